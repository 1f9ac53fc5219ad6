"""Give Python code to the executors of a cluster: Millstream's own package, and the modules next to a spec."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import millstream
from millstream.spark import internals, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark import SparkContext

# Folders that contain other people's packages or a run's own files.
_FOREIGN = ("node_modules", "site-packages", "__pycache__")


def ship_package(context: SparkContext) -> None:
    """Give Millstream's modules to the executors of a cluster or of spark-submit: writers call them in tasks.

    The executors then run the driver's version, whether or not their Python has another one. Packages that these
    modules import (PyArrow, psycopg) must be installed there.
    """
    if _needs_code(context):
        folder = Path(millstream.__file__).parent
        _ship(context, folder.parent, sorted(folder.rglob("*.py")), "millstream")


def ship_project(folder: Path) -> None:
    """Let the workers import the Python modules in the spec's folder and below, from an archive on a cluster.

    Functions of the modules that a spec names are pickled by value; what those modules import is found here. Call it
    before a user's function is called for the first time: Spark notes then which archives the function needs.
    """
    context = internals.active_context()
    if context is None:
        return
    if _needs_code(context):
        _ship(context, folder, sorted(list_modules(folder)), "project")
    else:
        # A worker joins it to the folder of Spark's files, which leaves an absolute path as it is, and adds it to its
        # path next to the working directory. A folder of another pipeline in this session is replaced.
        internals.set_worker_folder(context, str(folder.resolve()))


def list_modules(folder: Path) -> Iterator[Path]:
    """Yield the modules in a folder, without those of virtual environments, hidden folders and packages of Node."""
    for root, folders, files in os.walk(folder):
        here = Path(root)
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".") and name not in _FOREIGN and not (here / name / "pyvenv.cfg").exists()
        ]
        yield from (here / name for name in files if name.endswith(".py"))


def _needs_code(context: SparkContext) -> bool:
    """Return whether Python workers do not find the packages and files of this process.

    Those of a JVM that this process has started inherit its PYTHONPATH and its working directory. Those of
    spark-submit's JVM, which was there before, do not.
    """
    return not settings.is_local(str(context.master)) or "PYSPARK_GATEWAY_PORT" in os.environ


def _ship(context: SparkContext, folder: Path, files: list[Path], name: str) -> None:
    """Send one archive of these files, unless the session has it. Its name says what is in it."""
    texts = {str(file.relative_to(folder)): file.read_bytes() for file in files}
    content = hashlib.sha256(b"".join(path.encode() + text for path, text in texts.items())).hexdigest()[:16]
    archive_name = f"{name}-{content}.zip"
    if not texts or any(Path(uri).name == archive_name for uri in context.listFiles):
        return
    # Next to the session's other files, which are private and removed with it.
    archive = Path(tempfile.mkdtemp(dir=context.getConf().get("spark.local.dir"))) / archive_name
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        for path, text in texts.items():
            zipped.writestr(path, text)
    before = list(sys.path)
    context.addPyFile(str(archive))
    # The driver has the code itself, and must not import it from the copy.
    sys.path[:] = before
