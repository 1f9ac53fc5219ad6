"""Compile a Java class for a server of the local stack, against the server's jars."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import NotReady
from millstream.spark import cache_folder
from millstream.spark.jars.ivy_download import pyspark_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millstream.spark.java_discovery import Java

_SOURCES = Path(__file__).with_name("java")
_COMPILER = _SOURCES / "Compile.java"


@dataclass(frozen=True)
class ServerClass:
    """A class that a server of the stack has in addition to its jars."""

    name: str
    """Full name."""
    folder: str
    """Name of the folder of its versions in the cache."""
    title: str
    """What it is, for messages."""
    alternative: str
    """What to do if it cannot be compiled."""

    @property
    def source(self) -> Path:
        """The source file."""
        return _SOURCES / f"{self.name.rpartition('.')[2]}.java"

    @property
    def file(self) -> Path:
        """The compiled file, relative to a folder of a class path."""
        return Path(f"{self.name.replace('.', '/')}.class")


def compile_class(of: ServerClass, java: Java, jars: Sequence[Path], report: Callable[[str], None]) -> Path:
    """Return the folder that comes before the server's jars on its class path.

    The class is compiled once for these jars. Raises NotReady if it cannot be compiled.
    """
    folder = cache_folder.create_folder(of.folder) / _version(of, jars)
    if not (folder / of.file).is_file():
        report(f"compiling {of.title}")
        _compile(of, java, jars, folder)
    if not (folder / of.file).is_file():
        raise NotReady(f"the folder {folder} is incomplete", f"remove it and try again: rm -r {folder}")
    return folder


def _version(of: ServerClass, jars: Sequence[Path]) -> str:
    """Return a hash of the source and these jars."""
    parts = [of.source.read_bytes(), *(jar.name.encode() for jar in jars)]
    return hashlib.sha256(b"\n".join(parts)).hexdigest()[:20]


def _compile(of: ServerClass, java: Java, jars: Sequence[Path], folder: Path) -> None:
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
                str(of.source),
                str(draft),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode or not (draft / of.file).is_file():
            raise NotReady(f"{of.title} could not be compiled: {_reason(result.stderr)}", of.alternative)
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
