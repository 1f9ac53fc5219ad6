"""Let only the local broker's own user and root connect to it, by a class compiled for the broker."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import NotReady
from millstream.spark import cache_folder
from millstream.spark.jars.ivy_download import pyspark_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millstream.spark.java_discovery import Java

_SOURCES = Path(__file__).with_name("java")
_SOURCE, _COMPILER = _SOURCES / "PlaintextChannelBuilder.java", _SOURCES / "Compile.java"
# The compiled class.
_CLASS = Path("org/apache/kafka/common/network/PlaintextChannelBuilder.class")
# The table with the owner of each TCP connection; the class reads it too.
_TABLE = "/proc/self/net/tcp"


def compile_access_check(java: Java, jars: Sequence[Path], report: Callable[[str], None]) -> Path | None:
    """Return the folder that comes before the broker's jars on its class path.

    Returns None if the system does not report the owner of a connection, as on macOS: every user of such a machine
    can reach the broker. The class is compiled once for these jars. Raises NotReady if it cannot be compiled.
    """
    if not os.access(_TABLE, os.R_OK):
        report(
            "every user of this machine can reach the broker: the system does not report the owner of a connection"
        )
        return None
    folder = cache_folder.create_folder("broker-access") / _version(jars)
    if not (folder / _CLASS).is_file():
        report("compiling the broker's access check")
        _compile(java, jars, folder)
    if not (folder / _CLASS).is_file():  # without it the broker would start, open to all
        raise NotReady(f"the folder {folder} is incomplete", f"remove it and try again: rm -r {folder}")
    return folder


def _version(jars: Sequence[Path]) -> str:
    """Return a hash of this source and these jars."""
    parts = [_SOURCE.read_bytes(), *(jar.name.encode() for jar in jars)]
    return hashlib.sha256(b"\n".join(parts)).hexdigest()[:20]


def _compile(java: Java, jars: Sequence[Path], folder: Path) -> None:
    """Compile with Janino, which PySpark includes, because a Java runtime has no compiler."""
    janino = [
        *(pyspark_folder() / "jars").glob("janino-*.jar"),
        *(pyspark_folder() / "jars").glob("commons-compiler-*.jar"),
    ]
    draft = Path(tempfile.mkdtemp(prefix="compiling-", dir=folder.parent))
    try:
        result = subprocess.run(
            [
                str(java.binary),
                "-XX:TieredStopAtLevel=1",
                "-cp",
                os.pathsep.join(map(str, [*janino, *jars])),
                # Runs a source file, which in turn compiles the other one.
                "org.codehaus.janino.SimpleCompiler",
                str(_COMPILER),
                "Compile",
                str(_SOURCE),
                str(draft),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode or not (draft / _CLASS).is_file():
            raise NotReady(
                f"the broker's access check could not be compiled: {_reason(result.stderr)}",
                "install PySpark again, or use an existing broker: millstream up --kafka HOST:PORT",
            )
        with contextlib.suppress(OSError):  # another process was faster: the same class is in place
            draft.replace(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _reason(output: str) -> str:
    """Return the line of a Java program's output that contains the reason of its failure."""
    lines = [
        line.strip()
        for line in output.splitlines()
        if line.strip() and not line.startswith(("\t", "Picked up"))
    ]
    return (lines or ["Janino gave no reason"])[-1]
