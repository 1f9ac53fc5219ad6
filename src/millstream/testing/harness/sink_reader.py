"""Read back the rows that the real sinks of a case received in a step."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import InvalidInput
from millstream.spec.output_mode import OutputMode
from millstream.testing.harness.collecting_sink import collect_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.api.sink import Sink
    from millstream.testing.model import Row


class SinkReader:
    """Reports rows that were added to sinks since the last call, counting duplicates.

    In complete mode, all rows of the sink are reported.
    """

    def __init__(self, spark: SparkSession, mode: OutputMode) -> None:
        self._spark = spark
        self._mode = mode
        self._before: dict[str, Counter[str]] = {}
        self._sinks: dict[str, Sink] = {}

    def register(self, key: str, sink: Sink) -> None:
        """Register a sink that is written to, so that `discard` deletes its target."""
        self._sinks[key] = sink

    def take(self, key: str, sink: Sink, schema: StructType) -> tuple[Row, ...]:
        """Return the rows added to a sink since the last call. Raises `InvalidInput` for an unreadable kind."""
        self.register(key, sink)
        output = sink.outcome(self._spark.createDataFrame([], schema))
        contents = sink.read_all(self._spark, schema if output is None else output.schema, self._mode)
        if contents is None:
            raise InvalidInput(
                f"the rows of {sink.describe()} in {self._mode.value} mode cannot be read back",
                "expect rows of the query, or leave out sinks: real",
            )
        current = collect_rows(contents)
        if self._mode is OutputMode.COMPLETE:
            return current
        remaining = self._before.get(key, Counter()).copy()
        self._before[key] = Counter(repr(row) for row in current)
        added = []
        for row in current:
            if remaining[repr(row)]:
                remaining[repr(row)] -= 1
            else:
                added.append(row)
        return tuple(added)

    def discard(self) -> None:
        """Delete the targets of all registered sinks."""
        for sink in self._sinks.values():
            sink.discard()
