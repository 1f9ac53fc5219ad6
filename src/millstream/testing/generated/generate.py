"""Generate an event-time test for each query of a project, and keep those that pass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyspark.sql import types as t

from millstream.checking.query_plan import SourcePlaces, operators
from millstream.checking.sample_rows.column_hints import read_column_hints
from millstream.diagnostics.finding import Span
from millstream.pipeline.graph import PipelineGraph
from millstream.testing.files.loader import load
from millstream.testing.generated.batch_comparison import (
    BatchComparison,
    GeneratedCase,
    compare_with_batch,
    unstable_columns,
)
from millstream.testing.generated.case_text import format_generated_test
from millstream.testing.generated.event_rows import (
    FAR,
    LATE,
    EventTimes,
    build_items,
    build_table,
    plan_steps,
)
from millstream.testing.harness.memory_stream import raw_ddl
from millstream.testing.harness.memory_streams import MemoryStreams, reduce_pipeline
from millstream.testing.harness.session import open_case_session
from millstream.testing.model import Case, Expected, Feed, Step
from millstream.testing.runner.execute import run_case
from millstream.testing.shuffle.output_semantics import derive_shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.analysis.query.plan_model import Operator
    from millstream.checking.sample_rows.column_hints import ColumnHints
    from millstream.checking.sample_rows.generated_rows import RowPlan
    from millstream.pipeline.model import Pipeline, SourceEntry
    from millstream.testing.model import Outcome

# The clock of all generated tests; their rows begin at noon of that day.
_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_NOWHERE = Span.point("pipeline.yml")


@dataclass(frozen=True)
class GeneratedTest:
    """The test of a query, or the reason why there is none."""

    query: str
    text: str
    """The test file; "" if there is none."""
    sentence: str
    """What its expected rows are, or why there is no test."""
    is_batch_result: bool = False
    """Whether a batch run gives the expected rows too."""


def write_tests(
    spark: SparkSession, pipeline: Pipeline, env: Mapping[str, str], scratch: Path
) -> Iterator[GeneratedTest]:
    """Write `tests/QUERY.yml` for each query of a project, and yield what it holds.

    A test that does not pass when it is read and run again is deleted, with the reason in its sentence. `scratch` is
    a folder for checkpoints.
    """
    for number, query in enumerate(pipeline.queries):
        generated = generate_test(spark, pipeline, query, scratch / f"first-{number}")
        if not generated.text:
            yield generated
            continue
        file = pipeline.folder / "tests" / f"{query}.yml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(generated.text, encoding="utf-8")
        reason = find_failure(spark, file, env, scratch / f"second-{number}")
        if reason:
            file.unlink()
            generated = GeneratedTest(query, "", f"its test does not pass when it is run again: {reason}")
        yield generated


def generate_test(spark: SparkSession, pipeline: Pipeline, query: str, scratch: Path) -> GeneratedTest:
    """Return a test of a query with generated rows. Its expectations are what the query does with them.

    `scratch` is a folder for its checkpoint. Whether a batch run gives the same rows is in the result.
    """
    try:
        generated = _build_case(spark, pipeline, query, has_nulls=True)
        outcome = run_case(spark, generated.case, scratch)
        if _fault(outcome):
            # A function of the project may not expect NULL.
            generated = _build_case(spark, pipeline, query, has_nulls=False)
            outcome = run_case(spark, generated.case, scratch.with_name(f"{scratch.name}-without-null"))
        if reason := _fault(outcome):
            return GeneratedTest(query, "", f"the query fails over generated rows: {reason}")
        shape = derive_shape(pipeline, query, generated.root)
        compared = compare_with_batch(spark, generated, shape, outcome.results)
        if compared.is_same and not any(step.rows.get("") for step in outcome.results):
            sentence = "no generated row passes the query, so its test shows only that nothing is returned"
            compared = BatchComparison(is_same=False, sentence=sentence)
        unstable = unstable_columns(generated.root)
        text = format_generated_test(generated.case, outcome.results, unstable, compared)
    except Exception as error:  # noqa: BLE001 - the functions of the project run here, and may raise anything
        return GeneratedTest(query, "", _first_line(error))
    return GeneratedTest(query, text, compared.sentence, compared.is_same)


def _build_case(spark: SparkSession, pipeline: Pipeline, query: str, *, has_nulls: bool) -> GeneratedCase:
    """Return a case with rows for all sources of a query. Raises what Spark and the user's functions raise."""
    graph = PipelineGraph.of(pipeline)
    entries = {name: pipeline.sources[name] for name in graph.sources_of(query)}
    tables = [name for name, entry in entries.items() if entry.static and entry.columns is not None]
    with open_case_session(spark, pipeline) as session:
        view = pipeline.reads(query)
        reduced = reduce_pipeline(pipeline, view)
        MemoryStreams(session).frames(reduced, dict.fromkeys(tables, ()), _NOW)
        formats = {name: entry.source.kind for name, entry in pipeline.sources.items()}
        # Spark's plan contains the names by which its views are read.
        frame = session.table(f"`{view}`")
        places = SourcePlaces(formats, frozenset(pipeline.views))
        root = operators(frame, places, pipeline.queries[query].output_mode)
        hints = read_column_hints([frame])
        streams = {name: entry for name, entry in entries.items() if not entry.static}
        # A fed message is JSON itself, and its columns are not those that the query decodes.
        raw = [_parse_columns(raw_ddl(session, name, entry)).names for name, entry in streams.items()]
        hints.messages = [message for message in hints.messages if message.names not in raw]
        schemas = {
            name: _columns(session, name, entry)
            for name, entry in entries.items()
            if name in streams or name in tables
        }
    case = Case(
        f"query {query} over rows in order, repeated, late and far ahead",
        pipeline,
        query,
        (),
        pipeline.folder / "tests" / f"{query}.yml",
        _NOWHERE,
        static={name: build_table(schemas[name], hints) for name in tables},
    )
    return _with_steps(
        case, root, plan_steps(EventTimes.of(root), has_nulls=has_nulls), streams, schemas, hints
    )


def _with_steps(
    case: Case,
    root: Operator,
    planned: list[list[RowPlan]],
    streams: Mapping[str, SourceEntry],
    schemas: Mapping[str, t.StructType],
    hints: ColumnHints,
) -> GeneratedCase:
    """Add the steps, each of which feeds all streams, and find the late rows and those far ahead by their number."""
    steps, late, far, number = [], set(), set(), 0
    for rows in planned:
        feed = {name: build_items(entry, schemas[name], rows, hints) for name, entry in streams.items()}
        steps.append(Step((Feed(feed),), Expected(), _NOWHERE))
        for _ in streams:
            for row in rows:
                late |= {number} if row.number == LATE else set()
                far |= {number} if row.number == FAR else set()
                number += 1
    return GeneratedCase(replace(case, steps=tuple(steps)), root, frozenset(late), frozenset(far))


def _columns(spark: SparkSession, name: str, entry: SourceEntry) -> t.StructType:
    """Return the columns that a test feeds to a source."""
    return _parse_columns(entry.ddl or raw_ddl(spark, name, entry))


def _parse_columns(ddl: str) -> t.StructType:
    parsed = t.StructType.fromDDL(ddl)
    assert isinstance(parsed, t.StructType)
    return parsed


def find_failure(spark: SparkSession, file: Path, env: Mapping[str, str], scratch: Path) -> str:
    """Read a test file again and run it; return why it does not pass, "" if it does."""
    suite = load(file, lambda _: env)
    if suite.has_errors:
        return suite.findings[0].message
    for case in suite.cases:
        outcome = run_case(spark, case, scratch)
        if reason := _fault(outcome):
            return reason
        for step in outcome.results:
            for difference in step.differences:
                return f"{difference.what} differ from run to run"
    return ""


def _fault(outcome: Outcome) -> str:
    return outcome.fault or next((step.error for step in outcome.results if step.error), "") or ""


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
