"""The front door: a script, or a declarative-pipelines project, to findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.runtime.scripts import calls
from millstream.runtime.scripts.declared import check_project
from millstream.runtime.scripts.judge import judged
from millstream.runtime.scripts.project import NAMES
from millstream.runtime.scripts.script import run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.runtime.checking import Checked


def check_script(spark: SparkSession, path: Path, args: Sequence[str] = ()) -> Checked:
    """Check a PySpark script as it is, or the declarative-pipelines project of a folder or its spec.

    Their own code runs in this process; what it asks of Spark is recorded, connects to nothing and writes nothing.
    `args` are the script's. Never raises for what a script or a project does.
    """
    if path.is_dir() or path.name in NAMES:
        return check_project(spark, _spec(path))
    return judged(run(spark, path, args), calls.named(path))


def _spec(path: Path) -> Path:
    """The spec of a project's folder."""
    if not path.is_dir():
        return path
    return next((path / name for name in NAMES if (path / name).is_file()), path / NAMES[0])
