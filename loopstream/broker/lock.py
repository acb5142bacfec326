"""``python -m loopstream.broker.lock [--kafka VERSION]``: make the jar lock anew.

Resolves the runtime closure of ``org.apache.kafka:kafka_2.13`` with jgo, adds the SLF4J binding of
the Log4j that Kafka logs with, fetches every jar and writes its SHA-256 down.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from loopstream.broker.checksum import sha256_of
from loopstream.broker.fetch import jgo_context
from loopstream.broker.lockfile import LOCK_PATH, Jar, parse_lock, read_lock, render_lock
from loopstream.broker.maven import find_source
from loopstream.broker.say import say
from loopstream.errors import BrokerError, LoopstreamError

if TYPE_CHECKING:
    from jgo.maven import Artifact, MavenContext


def main(argv: Sequence[str] | None = None) -> int:
    """Write the lock file; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m loopstream.broker.lock")
    parser.add_argument("--kafka", metavar="VERSION", help="default: the version locked now")
    parser.add_argument("--output", type=Path, default=LOCK_PATH)
    options = parser.parse_args(argv)
    try:
        version = options.kafka or read_lock().version
        text = make_lock(version)
    except LoopstreamError as error:
        say(str(error))
        return error.exit_code
    options.output.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{options.output}: Kafka {version}, {len(parse_lock(text).jars)} jars\n")
    return 0


def make_lock(version: str) -> str:
    """The lock text for a Kafka version, resolved and hashed afresh in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        context = jgo_context(find_source(), Path(folder))
        try:
            artifacts = _closure(context, version)
            with ThreadPoolExecutor(8) as pool:
                jars = list(pool.map(_locked, artifacts))
        except (OSError, RuntimeError) as error:
            raise BrokerError(
                f"Kafka {version} can't be resolved ({type(error).__name__}).",
                hint="Check the version and the Maven repository.",
            ) from None
    return render_lock(version, jars)


def _closure(context: MavenContext, version: str) -> list[Artifact]:
    # The "!" keeps jgo from importing the artifact as a BOM, which would let it change versions.
    kafka = context.create_dependency(f"org.apache.kafka:kafka_2.13:{version}!")
    kafka.scope = "runtime"
    roots, found = context.resolver.resolve([kafka])
    artifacts = [dep.artifact for dep in (*roots, *found) if dep.scope in ("compile", "runtime")]
    return [*artifacts, _slf4j_binding(context, artifacts)]


def _slf4j_binding(context: MavenContext, artifacts: Sequence[Artifact]) -> Artifact:
    # Kafka's own distribution ships this jar too, but its POM leaves the choice to the user.
    log4j = next(one for one in artifacts if one.artifactId == "log4j-core")
    project = context.project("org.apache.logging.log4j", "log4j-slf4j-impl")
    return project.at_version(log4j.version).artifact()


def _locked(artifact: Artifact) -> Jar:
    path = artifact.resolve()
    return Jar(
        artifact.groupId,
        artifact.artifactId,
        artifact.version,
        sha256_of(path),
        path.stat().st_size,
    )


if __name__ == "__main__":
    sys.exit(main())
