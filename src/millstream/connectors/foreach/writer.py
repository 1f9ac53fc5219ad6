"""Hands the rows of a batch to the user's function or class, partition by partition, in tasks."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from millstream.connectors.sink import SinkIdentity, Writer, Written
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructType


class ForeachWriter(Writer):
    """Runs one task a partition of the batch."""

    def __init__(self, function: Callable[..., Any], identity: SinkIdentity) -> None:
        super().__init__(identity)
        self._function = function

    def open(self, spark: SparkSession, schema: StructType) -> None:  # noqa: ARG002 - any columns will do
        """Raises `NotReady` for a class without `process`."""
        if isinstance(self._function, type) and not callable(getattr(self._function, "process", None)):
            raise NotReady(
                f"class {self._function.__name__} has no method process(row)",
                "give it one; open(partition_id, epoch_id) and close(error) may stand beside it",
            )

    def flow(self, rows: DataFrame) -> DataStreamWriter:
        """Spark's own `foreach`. What the user's code raises ends the query."""
        function = self._function
        return rows.writeStream.foreach(function() if isinstance(function, type) else function)

    def write(self, frame: DataFrame, batch_id: int) -> Written:
        """Run the batch. What the user's code raises fails the task, which Spark tries again as it is set to."""
        rows = frame.rdd.mapPartitionsWithIndex(handing(self._function, batch_id)).sum()
        return Written(int(rows))


def handing(function: Callable[..., Any], batch_id: int) -> Callable[[int, Iterable[Any]], Iterator[int]]:
    """What a task does with its partition: as Spark's own foreach does, and gives how many rows there were."""

    def plain(partition: int, rows: Iterable[Any]) -> Iterator[int]:  # noqa: ARG001 - a function of a row
        count = 0
        for row in rows:
            function(row)
            count += 1
        yield count

    def opened(partition: int, rows: Iterable[Any]) -> Iterator[int]:
        writer, error, count = function(), None, 0
        wanted = writer.open(partition, batch_id) if hasattr(writer, "open") else True
        try:
            if not wanted:
                # What a stateful query keeps is committed for partitions that were read to their end.
                deque(rows, maxlen=0)
            for row in rows if wanted else ():
                writer.process(row)
                count += 1
        except Exception as raised:
            # Whatever it is goes on to Spark; `close` is told of it first, as in Spark's own foreach.
            error = raised
            raise
        finally:
            if hasattr(writer, "close"):
                writer.close(error)
        yield count

    return opened if isinstance(function, type) else plain
