"""Say the views of a project in SQL instead of Python, where its tests show that the rows stay the same."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import yaml

from millstream.checking.scripts.migration.project_files import dump_spec
from millstream.checking.scripts.migration.sql_recorder import NotSayable, record_sql
from millstream.frames.user_functions import find_function
from millstream.pipeline.graph import PipelineGraph
from millstream.pipeline.spec_file import load_spec
from millstream.testing.files.loader import load
from millstream.testing.generated.generate import find_failure
from millstream.testing.harness.memory_streams import MemoryStreams, reduce_pipeline
from millstream.testing.harness.session import open_case_session

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.pipeline.model import Pipeline

_NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class SqlView:
    """A view whose function was considered. `reason` says why it stays a function; "" if it is SQL."""

    name: str
    reason: str = ""


def write_sql_views(
    spark: SparkSession, spec: Path, env: Mapping[str, str], scratch: Path
) -> Iterator[SqlView]:
    """Replace functions of a project with SQL in its spec, one query after another, and yield what became of each.

    A view is replaced only if the test of its query passes with the SQL: the same rows, batch by batch, with the same
    watermark. Views of queries without a test that expects rows stay functions.
    """
    names = _queries_with_functions(spec, env)
    for number, name in enumerate(names):
        pipeline = load_spec(spec, env).pipeline
        assert pipeline is not None
        test = spec.parent / "tests" / f"{name}.yml"
        if not test.is_file():
            yield SqlView(name, "its query has no test that could show that SQL gives the same rows")
            continue
        if not _has_expected_rows(test, env):
            yield SqlView(name, "its test expects no row, so it cannot show that SQL gives the same rows")
            continue
        try:
            sql = _record(spark, pipeline, name)
        except Exception as error:  # noqa: BLE001 - the author's function meets a frame that is not Spark's
            yield SqlView(name, _describe(error))
            continue
        yield SqlView(name, _replace(spark, spec, name, sql, test, env, scratch / f"sql-{number}"))


def _has_expected_rows(test: Path, env: Mapping[str, str]) -> bool:
    cases = load(test, lambda _: env).cases
    return any(step.expected.rows.get("") for case in cases for step in case.steps)


def _queries_with_functions(spec: Path, env: Mapping[str, str]) -> list[str]:
    """Return the queries whose view is a function of `transforms.py` without expectations."""
    pipeline = load_spec(spec, env).pipeline
    if pipeline is None:
        return []
    return [
        name
        for name in pipeline.queries
        if (view := pipeline.views.get(pipeline.reads(name))) is not None
        and pipeline.reads(name) == name
        and view.python is not None
        and not view.expect
    ]


def _record(spark: SparkSession, pipeline: Pipeline, name: str) -> str:
    """Return the SQL of a view's function. Raises NotSayable, and whatever the function raises."""
    reference = pipeline.views[name].python
    assert reference is not None
    function = find_function(reference, pipeline.folder)
    with open_case_session(spark, pipeline) as session:
        reduced = reduce_pipeline(pipeline, name)
        tables = {key: () for key, entry in reduced.sources.items() if entry.static and entry.columns}
        _, frames = MemoryStreams(session).frames(reduced, tables, _NOW)
        reads = PipelineGraph.of(pipeline).reads[name]
        inputs: dict[str, DataFrame] = {read: frames[read] for read in reads}
        sql = record_sql(session, function, inputs)
        if session.sql(sql).schema != frames[name].schema:
            raise NotSayable("a column whose name or type SQL gives in another way")
        return sql


def _describe(error: Exception) -> str:
    if isinstance(error, NotSayable):
        return f"{error} has no SQL here"
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _replace(
    spark: SparkSession, spec: Path, name: str, sql: str, test: Path, env: Mapping[str, str], scratch: Path
) -> str:
    """Write the SQL into the spec, and take it back if the test does not pass; return the reason then."""
    text, code = spec.read_text(encoding="utf-8"), spec.parent / "transforms.py"
    document = yaml.safe_load(text)
    views = {**document.get("views", {}), name: sql + "\n"}
    before = {key: value for key, value in document.items() if key not in ("views", "queries")}
    spec.write_text(dump_spec({**before, "views": views, "queries": document["queries"]}), encoding="utf-8")
    reason = find_failure(spark, test, env, scratch)
    if reason:
        spec.write_text(text, encoding="utf-8")
        return f"SQL gives other rows in its test: {reason}"
    _remove_function(code, name)
    return ""


def _remove_function(code: Path, name: str) -> None:
    """Remove a view's function from the module, and the module if it has no function any more."""
    tree = ast.parse(code.read_text(encoding="utf-8"))
    node = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)
    lines = code.read_text(encoding="utf-8").splitlines()
    rest_of_code = "\n".join([*lines[: node.lineno - 1], *lines[node.end_lineno :]]).rstrip() + "\n"
    rest = [other for other in tree.body if isinstance(other, ast.FunctionDef) and other is not node]
    if rest:
        code.write_text(rest_of_code, encoding="utf-8")
    else:
        code.unlink()
