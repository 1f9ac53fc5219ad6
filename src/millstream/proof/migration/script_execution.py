"""Run the queries of a script over given rows, one after another, with every write in the folder of the proof."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql.streaming.readwriter import DataStreamWriter

from millstream.checking.scripts.interception.placeholders import Unknown
from millstream.connectors import spark_formats
from millstream.proof.migration.delta_tables import build_delta_modules
from millstream.proof.migration.tables import ProofTables
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.checking.scripts.interception.monkeypatch import Patches
    from millstream.checking.scripts.interception.recording import StartedQuery, WriterCall
    from millstream.proof.migration.input_files import SourceFiles

# Spark's own methods, before a check replaces them.
_foreach_batch, _start = DataStreamWriter.foreachBatch, DataStreamWriter.start
_option, _output_mode, _trigger = (
    DataStreamWriter.option,
    DataStreamWriter.outputMode,
    DataStreamWriter.trigger,
)

# Options by which writers name their target, in the order in which they count.
_TARGETS = ("path", "dbtable", "table", "topic", "collection", "es.resource", "queue", "streamname")


class ProofExecution:
    """Runs queries until they have read everything, and writes to tables of the proof. A `ScriptExecution`."""

    def __init__(self, folder: Path, inputs: Mapping[str, SourceFiles]) -> None:
        self.folder = folder
        self.inputs = inputs
        self.runs = 0
        self._forget()

    def _forget(self) -> None:
        self.runs += 1
        self.tables = ProofTables(self.folder / f"tables-{self.runs}")
        self.failures: dict[int, str] = {}
        """Why a query ended with an error, by its number."""
        self.skipped: dict[int, list[str]] = {}
        """What the function of a query would have done, and the proof does not."""
        self._query = 0
        self._batch: DataFrame | None = None

    def begin(self, patches: Patches) -> None:
        """Forget an earlier run of the script, and give it the module of Delta."""
        self._forget()
        before = {name: sys.modules.get(name) for name in ("delta", "delta.tables")}
        sys.modules.update(build_delta_modules(self.tables, lambda: (self._query, self._batch)))
        patches.after(lambda: _restore_modules(before))

    def read(self, spark: SparkSession, source: str, *, streaming: bool) -> DataFrame | None:
        """Return the rows of a source by its name; None if there are none for it."""
        files = self.inputs.get(source)
        return None if files is None else files.read(spark, streaming=streaming)

    def read_table(self, spark: SparkSession, place: str, *, streaming: bool) -> DataFrame | None:
        """Return a table that the script has written; None if it has not."""
        return self.tables.read(spark, place, streaming=streaming)

    def start(self, query: StartedQuery) -> None:
        """Run a query until it has read everything."""
        if isinstance(query.frame, Unknown):
            return

        def write(batch: DataFrame, number: int) -> None:
            self._query, self._batch = query.number, batch
            if query.function is not None:
                query.function(batch, number)
            else:
                place = query.target or f"{query.format} {query.number}"
                mode = "overwrite" if query.mode is OutputMode.COMPLETE else "append"
                self.tables.write(batch, place, query.format, mode, query.number)

        if query.function is not None and query.format != "foreachBatch":
            self.skipped[query.number] = ["foreach, whose rows go where its function decides"]
            return
        try:
            self.run_stream(query.frame, query.mode, f"checkpoint-{self.runs}-{query.number}", write)
        except PySparkException as error:
            self.failures[query.number] = first_line(error)
        finally:
            self._query, self._batch = 0, None

    def run_stream(
        self, frame: DataFrame, mode: OutputMode, checkpoint: str, write: Callable[[DataFrame, int], None]
    ) -> None:
        """Give all batches of a stream to a function. Raises Spark's error if one fails."""
        writer = _output_mode(DataStreamWriter(frame), str(mode))
        writer = _option(writer, "checkpointLocation", str(self.folder / checkpoint))
        writer = _trigger(writer, availableNow=True)
        _start(_foreach_batch(writer, write)).awaitTermination()

    def run_function(self, number: int, function: Callable[[DataFrame, int], Any]) -> Callable[..., None]:
        """Return a function of batches whose writes belong to a query."""

        def write(batch: DataFrame, batch_id: int) -> None:
            self._query, self._batch = number, batch
            function(batch, batch_id)

        return write

    def write(self, frame: Any, calls: Sequence[WriterCall]) -> None:
        """Write a batch by the calls of Spark's batch writer, of which the last one writes."""
        if isinstance(frame, Unknown):
            return
        target = _Target.of(calls)
        if not target.place:
            self.skip(f"a write by {calls[-1][0]} without a target")
            return
        self.tables.write(frame, target.place, target.format, target.mode, self._query)

    def skip(self, what: str) -> None:
        """Note something that a run of the script would do, and this one does not."""
        self.skipped.setdefault(self._query, []).append(what)


class _Target:
    """Where a batch writer writes, from its settings and the call that writes."""

    def __init__(self) -> None:
        self.format, self.mode, self.place = "", "", ""
        self.options: dict[str, str] = {}

    @classmethod
    def of(cls, calls: Sequence[WriterCall]) -> _Target:
        """Return the target of the last call."""
        target = cls()
        for name, values, named in calls[:-1]:
            if name == "options":
                target.options |= {key.lower(): str(value) for key, value in named.items()}
            elif name == "option":
                key, value = (*values, *named.values())[:2]
                target.options[str(key).lower()] = str(value)
            else:
                setattr(target, name, str((*values, *named.values())[0]))
        method, args, kwargs = calls[-1]
        named = {**dict(zip(_PARAMETERS.get(method, ("path", "mode")), args, strict=False)), **kwargs}
        target.options |= {key.lower(): str(value) for key, value in named.items() if value is not None}
        target.mode = target.options.pop("mode", target.mode) or "errorifexists"
        target.format = target.options.pop("format", target.format)
        if method == "insertInto":
            target.mode = "overwrite" if target.options.get("overwrite") == "True" else "append"
        if method == "save" and target.format.lower() == spark_formats.KAFKA:
            target.mode = "append"
        target.place = next((target.options[key] for key in _TARGETS if key in target.options), "")
        if keyspace := target.options.get("keyspace"):
            target.place = f"{keyspace}.{target.place}"
        return target


_PARAMETERS = {
    "save": ("path", "format", "mode", "partitionBy"),
    "saveAsTable": ("table", "format", "mode", "partitionBy"),
    "insertInto": ("table", "overwrite"),
    "jdbc": ("url", "table", "mode", "properties"),
}


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message that says something: that of the user's code, if there is one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    raised = [line for line in lines if _is_python_error(line)]
    return (raised or lines or [type(error).__name__])[-1 if raised else 0][:300]


def _is_python_error(line: str) -> bool:
    head, separator, _ = line.partition(": ")
    return bool(separator) and head.rpartition(".")[2].endswith(("Error", "Exception")) and " " not in head


def _restore_modules(before: Mapping[str, Any]) -> None:
    for name, module in before.items():
        sys.modules.pop(name, None)
        if module is not None:
            sys.modules[name] = module
