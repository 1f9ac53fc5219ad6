"""Run the queries of a project over the input of a proof, with every write in the folder of the proof."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from millstream.checking.scripts.interception.monkeypatch import Patches
from millstream.checking.scripts.interception.recording import Recording
from millstream.checking.scripts.runner import intercept_spark
from millstream.connectors.api.values.sandbox import Sandbox
from millstream.connectors.api.writer import SinkIdentity
from millstream.diagnostics.failure import MillstreamError
from millstream.frames.build_views import build_frames, read_source
from millstream.frames.user_functions import bind_functions, find_function
from millstream.proof.migration.script_execution import ProofExecution, first_line
from millstream.spark.session_scope import separate_session
from millstream.spec.location import Location
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.api.sink import Sink
    from millstream.pipeline.model import Pipeline, SourceEntry
    from millstream.proof.migration.input_files import SourceFiles


class ProjectRun:
    """The project's side of a proof. `inputs` are the files of each source, by its name in the spec."""

    def __init__(
        self, spark: SparkSession, pipeline: Pipeline, folder: Path, inputs: Mapping[str, SourceFiles]
    ) -> None:
        self.spark = spark
        self.pipeline = pipeline
        self.inputs = inputs
        self.execution = ProofExecution(folder, inputs)
        self.sandbox = Sandbox(folder, "proof")
        self.results: dict[int, DataFrame] = {}
        """Tables that sinks wrote by their own writers, by the number of the query."""

    def run(self, queries: Mapping[int, str]) -> None:
        """Run queries, given by the number of the script's and their name in the spec, one after another."""
        settings = {key: value for key, value in self.pipeline.spark.items() if key.startswith("spark.sql.")}
        with Patches() as patches:
            # The project's own module may import Delta's.
            self.execution.begin(patches)
            for number, name in queries.items():
                with separate_session(self.spark, settings) as session:
                    try:
                        frames = build_frames(session, self.pipeline, self._reader(session), counted=False)
                        self._run_query(session, number, name, frames[self.pipeline.reads(name)])
                    except (PySparkException, MillstreamError) as error:
                        self.execution.failures[number] = first_line(error)

    def _reader(self, session: SparkSession) -> Callable[[str, SourceEntry], DataFrame]:
        def read(name: str, entry: SourceEntry) -> DataFrame:
            for place in entry.source.reads_from():
                written = self.execution.tables.read(session, place, streaming=not entry.static)
                if written is not None:
                    return written
            files = self.inputs.get(name)
            if files is None:
                raise MillstreamError(
                    f"the project reads source '{name}', which the script does not have",
                    f"give the project's sources the names of the script's: {', '.join(sorted(self.inputs))}",
                )
            fields = type(entry.source).model_fields
            if "path" in fields and entry.source.kind == files.format:
                moved: dict[str, object] = {"path": Location(files.folder)}
                if "max_files_per_trigger" in fields:
                    moved["max_files_per_trigger"] = 1
                source = entry.source.model_copy(update=moved)
                return read_source(session, name, entry.model_copy(update={"source": source}))
            return files.read(session, streaming=not entry.static)

        return read

    def _run_query(self, session: SparkSession, number: int, name: str, frame: DataFrame) -> None:
        query, execution = self.pipeline.queries[name], self.execution
        for position, entry in enumerate(query.to):
            checkpoint = f"checkpoint-{number}-{position}"
            functions = entry.sink.functions()
            if functions:
                (reference,) = functions.values()
                function = find_function(reference, self.pipeline.folder)
                # The function's own writes are redirected like those of the script.
                recording = Recording(execution=_Running(execution))
                with intercept_spark(self.spark, recording):
                    write = execution.run_function(number, function)
                    execution.run_stream(frame, query.output_mode, checkpoint, write)
                continue
            copy = entry.sink.in_sandbox(self.sandbox)
            place = next(iter(entry.sink.writes_to()), f"{entry.sink.kind} {number}")
            if copy is None or "path" not in type(copy).model_fields:
                mode = "overwrite" if query.output_mode is OutputMode.COMPLETE else "append"
                execution.run_stream(
                    frame,
                    query.output_mode,
                    checkpoint,
                    lambda batch, _id, place=place, mode=mode: execution.tables.write(  # type: ignore[misc]
                        batch, place, "", mode, number
                    ),
                )
                continue
            self._write_by_sink(session, number, name, frame, bind_functions(copy, self.pipeline.folder))

    def _write_by_sink(
        self, session: SparkSession, number: int, name: str, frame: DataFrame, sink: Sink
    ) -> None:
        """Write by the writer of the sink's kind, into its copy in the sandbox."""
        query = self.pipeline.queries[name]
        identity = SinkIdentity(self.pipeline.name, name, f"proof-{number}", sink.kind, query.output_mode)
        writer = sink.writer(identity)
        writer.open(session, frame.schema)
        try:
            self.execution.run_stream(
                frame,
                query.output_mode,
                f"checkpoint-{number}-{sink.kind}",
                writer.write,  # type: ignore[arg-type]
            )
        finally:
            writer.close()
        outcome = sink.outcome(session.createDataFrame([], frame.schema))
        schema = frame.schema if outcome is None else outcome.schema
        rows = sink.read_all(session, schema, query.output_mode)
        if rows is not None:
            self.results[number] = rows


class _Running(ProofExecution):
    """An execution that continues with the tables of another one, for the functions of the project."""

    def __init__(self, execution: ProofExecution) -> None:
        self.__dict__ = execution.__dict__

    def _forget(self) -> None:
        """Keep the tables that earlier queries wrote."""
