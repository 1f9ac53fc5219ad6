"""Run a script and its project over the same rows, and compare what each of the script's queries writes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.checking.sample_rows.column_hints import read_column_hints
from millstream.checking.scripts.execution.source_files import open_parts
from millstream.checking.scripts.interception.placeholders import Unknown
from millstream.checking.scripts.migration.migrate import record_migration
from millstream.checking.scripts.runner import run_script
from millstream.pipeline.spec_file import load_spec
from millstream.proof.migration.input_files import write_input
from millstream.proof.migration.project_run import ProjectRun
from millstream.proof.migration.script_execution import ProofExecution
from millstream.proof.migration.verdict import QueryVerdict, TableOutcome, compare_tables
from millstream.spark.session_scope import separate_session

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from millstream.checking.scripts.interception.recording import Recording, StartedQuery

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
    migration = record_migration(spark, script, args)
    recording = migration.script_run.recording
    loaded = load_spec(project / "pipeline.yml", env or {})
    if loaded.pipeline is None:
        reason = "; ".join(finding.message for finding in loaded.findings)
        return [_not_compared(query, f"the spec cannot be read: {reason}") for query in recording.queries]
    with tempfile.TemporaryDirectory(prefix="millstream-migrate-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        hints = read_column_hints(
            query.frame for query in recording.queries if not isinstance(query.frame, Unknown)
        )
        with separate_session(spark, {}) as session:
            inputs = write_input(session, recording, hints, folder / "input", samples)
        execution = ProofExecution(folder / "script", inputs)
        with open_parts(script) as parts:
            executed = run_script(spark, script, parts, args, execution=execution)
        names = migration.project.names
        by_spec_name = {names[source]: files for source, files in inputs.items() if source in names}
        project_run = ProjectRun(spark, loaded.pipeline, folder / "project", by_spec_name)
        queries = {
            number: query
            for number, query in migration.project.queries.items()
            if query in loaded.pipeline.queries
        }
        project_run.run(queries)
        return list(_verdicts(spark, recording, executed.recording, execution, project_run, queries))


def _verdicts(
    spark: SparkSession,
    recording: Recording,
    executed: Recording,
    execution: ProofExecution,
    project: ProjectRun,
    queries: Mapping[int, str],
) -> Iterator[QueryVerdict]:
    for query in recording.queries:
        number = query.number
        skipped = [*execution.skipped.get(number, ()), *project.execution.skipped.get(number, ())]
        if number not in queries:
            yield _not_compared(query, "it is not in the project")
        elif len(executed.queries) < number:
            yield _not_compared(query, "the script did not start it over these rows")
        elif number in execution.failures:
            yield _not_compared(
                query, f"the script's query fails over these rows: {execution.failures[number]}"
            )
        elif number in project.execution.failures:
            reason = f"only the project's query fails: {project.execution.failures[number]}"
            yield QueryVerdict(query.name, _line(query), TableOutcome.DIFFERENT, reason)
        elif skipped:
            yield _not_compared(query, f"the proof does not run {skipped[0]}")
        else:
            pairs = list(_pairs(spark, number, execution, project))
            yield compare_tables(query.name, _line(query), pairs)


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


def _not_compared(query: StartedQuery, reason: str) -> QueryVerdict:
    return QueryVerdict(query.name, _line(query), TableOutcome.NOT_COMPARED, reason)


def _line(query: StartedQuery) -> int:
    return query.span.line if query.span else 0
