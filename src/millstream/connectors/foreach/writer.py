"""Pass the rows of a batch to the user's function or class, by partition, in tasks."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from millstream.connectors.api.writer import SinkIdentity, Writer, WriteResult
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructType


class ForeachWriter(Writer):
    """Runs one task per partition of the batch."""

    def __init__(self, function: Callable[..., Any], identity: SinkIdentity) -> None:
        super().__init__(identity)
        self._function = function

    def open(self, spark: SparkSession, schema: StructType) -> None:  # noqa: ARG002 - accepts any columns
        """Raise `NotReady` for a class without `process`."""
        if isinstance(self._function, type) and not callable(getattr(self._function, "process", None)):
            raise NotReady(
                f"the class {self._function.__name__} of the foreach sink has no method process(row)",
                "add it; open(partition_id, epoch_id) and close(error) are optional",
            )

    def flow(self, rows: DataFrame) -> DataStreamWriter:
        """Return Spark's own `foreach`. An exception in the user's code stops the query."""
        function = self._function
        return rows.writeStream.foreach(function() if isinstance(function, type) else function)

    def write(self, frame: DataFrame, batch_id: int) -> WriteResult:
        """Run the batch. An exception in the user's code fails the task, which Spark retries as configured."""
        rows = frame.rdd.mapPartitionsWithIndex(partition_function(self._function, batch_id)).sum()
        return WriteResult(int(rows))


def partition_function(
    function: Callable[..., Any], batch_id: int
) -> Callable[[int, Iterable[Any]], Iterator[int]]:
    """Return the function for a task's partition, which behaves as Spark's foreach and yields the row count."""

    def call_function(partition: int, rows: Iterable[Any]) -> Iterator[int]:  # noqa: ARG001 - a function of a row
        count = 0
        for row in rows:
            function(row)
            count += 1
        yield count

    def call_writer(partition: int, rows: Iterable[Any]) -> Iterator[int]:
        writer, error, count = function(), None, 0
        should_process = writer.open(partition, batch_id) if hasattr(writer, "open") else True
        try:
            if not should_process:
                # A stateful query commits the state of a partition only if its rows were read to the end.
                deque(rows, maxlen=0)
            for row in rows if should_process else ():
                writer.process(row)
                count += 1
        except Exception as exception:
            # Every exception is re-raised to Spark; `close` receives it first, as in Spark's own foreach.
            error = exception
            raise
        finally:
            if hasattr(writer, "close"):
                writer.close(error)
        yield count

    return call_writer if isinstance(function, type) else call_function
