"""Entry point to check a PySpark script or a declarative-pipelines project."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.checking.scripts.declarative.check import check_project
from millstream.checking.scripts.declarative.project_spec import NAMES
from millstream.checking.scripts.execution.retries import NOTHING_GIVEN
from millstream.checking.scripts.execution.source_files import open_parts
from millstream.checking.scripts.findings import check_recording
from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.interception.absent import MARK
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
    return _hide_marks(check_project(spark, _spec(path), known_columns))


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
        return _hide_marks(check_project(spark, _spec(path)))
    try:
        with open_parts(path) as parts:
            script_run = run_script(spark, path, parts, args, known_columns)
            first = call_sites.display_name(parts[0].file if parts else path)
            return _hide_marks(check_recording(script_run, first))
    except SyntaxError as error:
        return check_recording(unreadable_script(error, path), call_sites.display_name(path))


def _hide_marks(checked: CheckResult) -> CheckResult:
    """Return a result that shows `…` where a query or a place has a name that is not known in a check."""
    findings = [
        replace(
            finding,
            message=_replace_mark(finding.message),
            why=_replace_mark(finding.why),
            fix=_replace_mark(finding.fix),
            query=None if finding.query is None else _replace_mark(finding.query),
        )
        for finding in checked.findings
    ]
    promises = [
        replace(promise, query=_replace_mark(promise.query), sink=_replace_mark(promise.sink))
        for promise in checked.promises
    ]
    judged = (
        None
        if checked.judged is None
        else tuple(replace(query, name=_replace_mark(query.name)) for query in checked.judged)
    )
    queries = tuple(replace(query, name=_replace_mark(query.name)) for query in checked.queries)
    return replace(checked, findings=findings, queries=queries, promises=promises, judged=judged)


def _replace_mark(text: str) -> str:
    return text.replace(MARK, "…")


def _spec(path: Path) -> Path:
    """Return the spec of a project's folder, or the folder if it has none."""
    return next((path / name for name in NAMES if (path / name).is_file()), path)
