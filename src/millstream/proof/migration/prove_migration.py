"""Run a script or a declarative project, and what it became, over the same rows, and compare their tables."""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from millstream.checking.sample_rows.column_hints import read_column_hints
from millstream.checking.scripts.declarative.check import record_project
from millstream.checking.scripts.declarative.flow_graph import DatasetKind
from millstream.checking.scripts.execution.source_files import open_parts
from millstream.checking.scripts.interception.placeholders import Unknown
from millstream.checking.scripts.migration.flow_migration import FlowMigration
from millstream.checking.scripts.migration.migrate import record_migration
from millstream.checking.scripts.runner import run_script
from millstream.pipeline.spec_file import load_spec
from millstream.proof.migration.flow_run import FlowRun
from millstream.proof.migration.input_files import write_input
from millstream.proof.migration.project_run import ProjectRun
from millstream.proof.migration.script_execution import ProofExecution
from millstream.proof.migration.verdict import QueryVerdict, TableOutcome, compare_tables
from millstream.spark.internals import start_callback_server
from millstream.spark.session_scope import separate_session

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from millstream.checking.scripts.interception.recording import Recording
    from millstream.checking.scripts.migration.project_files import MigratedProject
    from millstream.proof.migration.input_files import SourceFiles


@dataclass(frozen=True)
class _Written:
    """A query of a script, or a table of a declarative project."""

    number: int
    name: str
    line: int


NOTHING_GIVEN: Mapping[str, Path] = {}


def prove_migration(
    spark: SparkSession,
    script: Path,
    project: Path,
    args: Sequence[str] = (),
    samples: Mapping[str, Path] = NOTHING_GIVEN,
    env: Mapping[str, str] | None = None,
) -> list[QueryVerdict]:
    """Return a verdict for each query of the script. `project` is the folder that `migrate` has written.

    Both run in this process, over files that are generated from the columns of each source, or over `samples` by
    the source's name. Nothing but the folder of the proof is written.
    """
    # If a query of the script started it, it would end with the script's threads.
    start_callback_server(spark)
    migration = record_migration(spark, script, args)
    recording = migration.script_run.recording
    written = [
        _Written(query.number, query.name, query.span.line if query.span else 0)
        for query in recording.queries
    ]
    loaded = load_spec(project / "pipeline.yml", env or {})
    if loaded.pipeline is None:
        reason = "; ".join(finding.message for finding in loaded.findings)
        return [_not_compared(query, f"the spec cannot be read: {reason}") for query in written]
    with _proof_folder() as folder:
        frames = [query.frame for query in recording.queries if not isinstance(query.frame, Unknown)]
        inputs = _write_input(spark, recording, frames, folder, samples)
        execution = ProofExecution(folder / "script", inputs)
        with open_parts(script) as parts:
            executed = run_script(spark, script, parts, args, execution=execution)
        by_spec_name = _by_spec_name(migration.project, inputs)
        project_run = ProjectRun(spark, loaded.pipeline, folder / "project", by_spec_name)
        queries = {
            number: query
            for number, query in migration.project.queries.items()
            if query in loaded.pipeline.queries
        }
        project_run.run(queries)
        started = range(1, len(executed.recording.queries) + 1)
        return list(_verdicts(spark, written, started, execution, project_run, queries))


def prove_flows(
    spark: SparkSession,
    spec: Path,
    project: Path,
    samples: Mapping[str, Path] = NOTHING_GIVEN,
    env: Mapping[str, str] | None = None,
) -> list[QueryVerdict]:
    """Return a verdict for each table and sink of a declarative project, as `prove_migration` does for a script."""
    start_callback_server(spark)
    recorded = record_project(spark, spec)
    if recorded.graph is None:
        return []
    written = [
        _Written(number, dataset.name, dataset.span.line if dataset.span else 0)
        for number, dataset in enumerate(recorded.graph.datasets.values(), 1)
        if dataset.kind is not DatasetKind.TEMPORARY_VIEW
    ]
    loaded = load_spec(project / "pipeline.yml", env or {})
    if loaded.pipeline is None:
        reason = "; ".join(finding.message for finding in loaded.findings)
        return [_not_compared(table, f"the spec cannot be read: {reason}") for table in written]
    moved = FlowMigration(spark, recorded, spec).write()
    with _proof_folder() as folder:
        frames = [frame for frame in recorded.graph.list_written() if isinstance(frame, DataFrame)]
        inputs = _write_input(spark, recorded.recording, frames, folder, samples)
        # A check reads a table of the project as an empty source of that name.
        sources = recorded.recording.sources
        for table in [name for name in inputs if sources[name].format == "table"]:
            if recorded.graph.key(table) in recorded.graph.datasets:
                del inputs[table]
        execution = ProofExecution(folder / "script", inputs)
        run = FlowRun(execution)
        record_project(spark, spec, execution=run)
        queries = {number: name for number, name in moved.queries.items() if name in loaded.pipeline.queries}
        project_run = ProjectRun(spark, loaded.pipeline, folder / "project", _by_spec_name(moved, inputs))
        project_run.run(queries)
        started = set(run.numbers.values())
        return list(_verdicts(spark, written, started, execution, project_run, queries))


def _verdicts(
    spark: SparkSession,
    written: Sequence[_Written],
    started: Container[int],
    execution: ProofExecution,
    project: ProjectRun,
    queries: Mapping[int, str],
) -> Iterator[QueryVerdict]:
    for query in written:
        number = query.number
        skipped = [*execution.skipped.get(number, ()), *project.execution.skipped.get(number, ())]
        if number not in queries:
            yield _not_compared(query, "it is not in the project")
        elif number not in started:
            yield _not_compared(query, "the script did not start it over these rows")
        elif number in execution.failures:
            yield _not_compared(
                query, f"the script's query fails over these rows: {execution.failures[number]}"
            )
        elif number in project.execution.failures:
            reason = f"only the project's query fails: {project.execution.failures[number]}"
            yield QueryVerdict(query.name, query.line, TableOutcome.DIFFERENT, reason)
        elif skipped:
            yield _not_compared(query, f"the proof does not run {skipped[0]}")
        else:
            pairs = list(_pairs(spark, number, execution, project))
            yield compare_tables(query.name, query.line, pairs)


def _pairs(
    spark: SparkSession, number: int, execution: ProofExecution, project: ProjectRun
) -> Iterator[tuple[str, DataFrame, DataFrame | None]]:
    """Yield the tables of a query: the place, the script's, and the project's if it has it."""
    places = execution.tables.written.get(number, [])
    others = project.execution.tables.written.get(number, [])
    for place in places:
        mine = execution.tables.read(spark, place)
        assert mine is not None
        if number in project.results:
            yield place, mine, project.results[number]
        else:
            # A sink without a path has one table, whatever its name is.
            other = place if place in others or len(others) != 1 else others[0]
            yield place, mine, project.execution.tables.read(spark, other)


def _not_compared(query: _Written, reason: str) -> QueryVerdict:
    return QueryVerdict(query.name, query.line, TableOutcome.NOT_COMPARED, reason)


@contextlib.contextmanager
def _proof_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="millstream-migrate-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def _write_input(
    spark: SparkSession,
    recording: Recording,
    frames: Iterable[DataFrame],
    folder: Path,
    samples: Mapping[str, Path],
) -> dict[str, SourceFiles]:
    hints = read_column_hints(frames)
    with separate_session(spark, {}) as session:
        return write_input(session, recording, hints, folder / "input", samples)


def _by_spec_name(moved: MigratedProject, inputs: Mapping[str, SourceFiles]) -> dict[str, SourceFiles]:
    return {moved.names[source]: files for source, files in inputs.items() if source in moved.names}
