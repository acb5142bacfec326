"""Run a command line tool of Kafka from the same locked jars."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loopstream.broker.jars import ensure_jars
from loopstream.broker.java import Java, find_java
from loopstream.errors import BrokerError

# Short runs: the optimising compiler and a parallel collector would only cost start-up time.
QUICK_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:-UsePerfData")

# From Java 24 on, memory access as Kafka 4.1 does it is warned of unless allowed by name.
_MODERN_JAVA = 24
_MODERN_JVM = ("--sun-misc-unsafe-memory-access=allow", "--enable-native-access=ALL-UNNAMED")


@dataclass(frozen=True, slots=True)
class Runtime:
    """A Java and the class path of Kafka."""

    java: Java
    jars: tuple[Path, ...]

    def command(self, options: Sequence[str], main_class: str, args: Sequence[str]) -> list[str]:
        """The argv that runs ``main_class``."""
        classpath = os.pathsep.join(map(str, self.jars))
        quiet = _MODERN_JVM if self.java.major >= _MODERN_JAVA else ()
        jvm = [str(self.java.path), *QUICK_JVM, *quiet, *options]
        return [*jvm, "-cp", classpath, main_class, *args]


def find_runtime() -> Runtime:
    """Find Java first, then resolve the jars.

    Raises:
        BrokerError: either is not to be had.
    """
    java = find_java()
    return Runtime(java, ensure_jars())


def run_tool(
    main_class: str,
    args: Sequence[str] = (),
    *,
    runtime: Runtime | None = None,
    stdin: str = "",
    timeout: float = 120,
) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end, for example ``kafka.tools.DumpLogSegments``.

    Args:
        main_class: any main class in the jars of kafka_2.13.
        args: its arguments.
        runtime: found afresh if None.
        stdin: text for its standard input.
        timeout: seconds.

    Returns:
        Exit status and output; a status other than 0 is not raised.

    Raises:
        BrokerError: no Java or jars, or the tool took too long.
    """
    runtime = runtime or find_runtime()
    command = runtime.command(["-Xmx256m"], main_class, args)
    try:
        return subprocess.run(  # noqa: S603 - our own command, no shell
            command,
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise BrokerError(f"{main_class} did not end within {timeout:g} s.") from error
    except OSError as error:
        raise BrokerError(f"{main_class} can't be run: {error}.") from error
