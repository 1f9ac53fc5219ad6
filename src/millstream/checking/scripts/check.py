"""Entry point to check a PySpark script or a declarative-pipelines project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.checking.scripts.declarative.check import check_project
from millstream.checking.scripts.declarative.project_spec import NAMES
from millstream.checking.scripts.execution.retries import NOTHING_GIVEN
from millstream.checking.scripts.execution.source_files import open_parts
from millstream.checking.scripts.findings import check_recording
from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.runner import run_script, unreadable_script

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.checking.check import CheckResult


def check_project_at(
    spark: SparkSession, path: Path, known_columns: Mapping[str, str] = NOTHING_GIVEN
) -> CheckResult:
    """Check a declarative-pipelines project by its folder, its spec, or one file that declares its tables."""
    return check_project(spark, _spec(path), known_columns)


def check_script(
    spark: SparkSession,
    path: Path,
    args: Sequence[str] = (),
    known_columns: Mapping[str, str] = NOTHING_GIVEN,
) -> CheckResult:
    """Check an unmodified PySpark script, or the declarative-pipelines project of a folder or of its spec.

    The user's code runs in this process. Its calls to Spark are recorded; they connect to nothing and write nothing.
    `args` are passed to the script; `known_columns` are those of tables, paths and topics, as DDL or Spark's JSON.
    Never raises for anything that a script or a project does.
    """
    if path.is_dir() or path.name in NAMES:
        return check_project(spark, _spec(path))
    try:
        with open_parts(path) as parts:
            script_run = run_script(spark, path, parts, args, known_columns)
            return check_recording(script_run, call_sites.display_name(parts[0].file if parts else path))
    except SyntaxError as error:
        return check_recording(unreadable_script(error, path), call_sites.display_name(path))


def _spec(path: Path) -> Path:
    """Return the spec of a project's folder, or the folder if it has none."""
    return next((path / name for name in NAMES if (path / name).is_file()), path)
