"""Builds the Kafka Streams peer with Maven, and says how to start it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent


def command() -> list[str]:
    """The JVM with its class path; compiled when it was not yet, or has changed since."""
    classes, path = HERE / "target" / "classes", HERE / "target" / "classpath.txt"
    sources = [HERE / "pom.xml", *HERE.rglob("*.java")]
    if not path.exists() or path.stat().st_mtime < max(file.stat().st_mtime for file in sources):
        goals = ["compile", "dependency:build-classpath", f"-Dmdep.outputFile={path}"]
        subprocess.run(["mvn", "-q", "-B", *goals], cwd=HERE, check=True)  # noqa: S607 - of PATH
        path.touch()
    libraries = path.read_text(encoding="utf-8").strip()
    return ["java", "-Xmx1g", "-cp", f"{classes}:{libraries}", "peer.Streak"]
