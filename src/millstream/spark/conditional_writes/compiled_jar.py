"""Compile the Java classes of this folder into a jar, once a machine, with the compiler that Spark has (Janino)."""

from __future__ import annotations

import hashlib
import os
import subprocess
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import NotReady
from millstream.spark import cache_folder
from millstream.spark.jars import jar_cache
from millstream.spark.jars.ivy_download import pyspark_folder
from millstream.spark.java_discovery import find_java

if TYPE_CHECKING:
    from collections.abc import Sequence

SOURCES = ("ConditionalWrites.java", "ConditionalCheckpointFileManager.java", "ConditionalLogStore.java")
"""In an order in which each uses those before it."""
FILE_MANAGER = "millstream.ConditionalCheckpointFileManager"
LOG_STORE = "millstream.ConditionalLogStore"

_COMPILER = "JarCompiler"
_FOLDER = Path(__file__).parent
# Starting the JVM and compiling took 1.2 s; a loaded machine was seen to need 7 s.
_PATIENCE = 120.0


def ensure_s3_jars() -> list[Path]:
    """Return all jars that Spark needs for S3: the locked ones, downloaded if needed, and the compiled one."""
    return [*jar_cache.ensure_jars("s3"), ensure_compiled_jar()]


def ensure_compiled_jar() -> Path:
    """Return the jar of these classes, from the folder of MILLSTREAM_JARS or the user's cache, compiled if needed.

    Its name has a hash of the sources and of the libraries' versions. Two processes may call this at the same time.
    Raises `NotReady` if it cannot be compiled.
    """
    name = f"millstream-conditional-writes-{_hash_sources()}.jar"
    packaged = os.environ.get("MILLSTREAM_JARS")
    if packaged and (Path(packaged).expanduser() / name).is_file():
        return Path(packaged).expanduser() / name
    path = cache_folder.cache_home() / "jars" / name
    if path.is_file():
        return path
    cache_folder.create_folder("jars")
    draft = path.with_name(f".{name}.{os.getpid()}")
    try:
        _compile(draft, [_FOLDER / source for source in SOURCES])
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return path


def _hash_sources() -> str:
    digest = hashlib.sha256(metadata.version("pyspark").encode())
    for file in (*SOURCES, f"{_COMPILER}.java"):
        digest.update((_FOLDER / file).read_bytes())
    for jar in (*jar_cache.locked_jars()["spark"], *jar_cache.locked_jars()["s3"]):
        digest.update(jar.sha256.encode())
    return digest.hexdigest()[:16]


def _compile(target: Path, sources: Sequence[Path]) -> None:
    libraries = [
        *jar_cache.ensure_jars("spark"),
        *jar_cache.ensure_jars("s3"),
        pyspark_folder() / "jars" / "*",
    ]
    command = [
        str(find_java().binary),
        "-Xmx256m",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        ":".join(map(str, libraries)),
        # It compiles a file in memory and calls the `main` of a class in it.
        "org.codehaus.janino.SimpleCompiler",
        str(_FOLDER / f"{_COMPILER}.java"),
        _COMPILER,
        str(target),
        *map(str, sources),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    if done.returncode != 0 or not target.is_file():
        reasons = [line for line in done.stderr.splitlines() if "Exception" in line]
        raise NotReady(
            f"the classes for S3 cannot be compiled: {reasons[-1] if reasons else done.stderr[-300:]}",
            "report this as a defect of Millstream, with the output of 'millstream doctor'",
        )
