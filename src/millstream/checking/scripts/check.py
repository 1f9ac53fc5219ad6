"""Entry point to check a PySpark script or a declarative-pipelines project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.checking.scripts.declarative.check import check_project
from millstream.checking.scripts.declarative.project_spec import NAMES
from millstream.checking.scripts.findings import check_recording
from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.runner import run_script

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.checking.check import Checked


def check_script(spark: SparkSession, path: Path, args: Sequence[str] = ()) -> Checked:
    """Check an unmodified PySpark script, or the declarative-pipelines project of a folder or of its spec.

    The user's code runs in this process. Its calls to Spark are recorded; they connect to nothing and write nothing.
    `args` are passed to the script. Never raises for anything that a script or a project does.
    """
    if path.is_dir() or path.name in NAMES:
        return check_project(spark, _spec(path))
    return check_recording(run_script(spark, path, args), call_sites.display_name(path))


def _spec(path: Path) -> Path:
    """Return the spec of a project's folder."""
    if not path.is_dir():
        return path
    return next((path / name for name in NAMES if (path / name).is_file()), path / NAMES[0])
