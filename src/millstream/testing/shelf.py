"""What the real sinks of a case got in a step, told by what a reader finds in them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import WrongUse
from millstream.spec.mode import OutputMode
from millstream.testing.collecting import rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.sink import Sink
    from millstream.testing.case import Row


class Shelf:
    """Looks into sinks. A row counts as come where it was not there before, as often as it is there more often.

    In complete mode all rows of the sink are told.
    """

    def __init__(self, spark: SparkSession, mode: OutputMode) -> None:
        self._spark = spark
        self._mode = mode
        self._before: dict[str, Counter[str]] = {}
        self._sinks: dict[str, Sink] = {}

    def seen(self, key: str, sink: Sink) -> None:
        """Remember a sink that is written to, so that it is removed in the end."""
        self._sinks[key] = sink

    def take(self, key: str, sink: Sink, schema: StructType) -> tuple[Row, ...]:
        """What came to a sink since the last call. Raises `WrongUse` for a kind that cannot be read."""
        self.seen(key, sink)
        made = sink.outcome(self._spark.createDataFrame([], schema))
        whole = sink.whole(self._spark, schema if made is None else made.schema, self._mode)
        if whole is None:
            raise WrongUse(
                f"what {sink.describe()} holds in {self._mode.value} mode cannot be told",
                "expect rows of the query, or leave out sinks: real",
            )
        found = rows(whole)
        if self._mode is OutputMode.COMPLETE:
            return found
        left = self._before.get(key, Counter()).copy()
        self._before[key] = Counter(repr(row) for row in found)
        new = []
        for row in found:
            if left[repr(row)]:
                left[repr(row)] -= 1
            else:
                new.append(row)
        return tuple(new)

    def discard(self) -> None:
        """Remove what the sinks have written."""
        for sink in self._sinks.values():
            sink.discard()
