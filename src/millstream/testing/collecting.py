"""What stands in the place of sinks in a test: writers that collect rows, and die where a test wants it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.connectors.sink import SinkIdentity, Writer, Written
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.testing.case import Row

BEFORE, AFTER = "before_sink", "after_sink"
"""Where a run may die beside the names of its sinks."""


class Died(Exception):
    """The end of a run that a test asked for."""


@dataclass
class Collected:
    """The rows that one sink has got, by batch. It outlives each start, as a real sink does."""

    mode: OutputMode
    held: set[int] = field(default_factory=set)
    fresh: list[tuple[Row, ...]] = field(default_factory=list)
    """The rows of each batch since they were last taken."""

    def take(self) -> tuple[Row, ...]:
        """What came since the last call; in complete mode all rows of the last batch, whenever that was."""
        if self.mode is OutputMode.COMPLETE:
            del self.fresh[:-1]
            return self.fresh[-1] if self.fresh else ()
        fresh, self.fresh = self.fresh, []
        return tuple(row for rows in fresh for row in rows)


class Collector(Writer):
    """Keeps each batch's rows once."""

    def __init__(
        self, identity: SinkIdentity, kept: Collected, collect: Callable[[DataFrame, int], tuple[Row, ...]]
    ) -> None:
        super().__init__(identity)
        self._kept = kept
        self._collect = collect

    def holds(self, batch_id: int) -> bool:
        """Has it the batch?"""
        return batch_id in self._kept.held

    def write(self, frame: DataFrame, batch_id: int) -> Written:
        """Collect one batch."""
        if self.holds(batch_id):
            return Written(skipped=True)
        rows = self._collect(frame, batch_id)
        self._kept.fresh.append(rows)
        self._kept.held.add(batch_id)
        return Written(len(rows))


class Mortal(Writer):
    """A writer after which the run dies, once it is told to."""

    def __init__(self, inner: Writer, dies: Callable[[], bool]) -> None:
        super().__init__(inner.identity)
        self._inner = inner
        self._dies = dies
        self.passes = inner.passes

    def open(self, spark: SparkSession, schema: StructType) -> None:
        """Open the writer."""
        self._inner.open(spark, schema)

    def holds(self, batch_id: int) -> bool:
        """Has the sink the batch?"""
        return self._inner.holds(batch_id)

    def write(self, frame: DataFrame, batch_id: int) -> Written:
        """Write one batch, and die if that is wanted."""
        written = self._inner.write(frame, batch_id)
        if self._dies():
            raise Died(f"the run died after a sink had batch {batch_id}")
        return written

    def close(self) -> None:
        """Let go of what the writer holds."""
        self._inner.close()


def rows(frame: DataFrame) -> tuple[Row, ...]:
    """The rows of a frame, columns by name: instants in UTC, structs and maps as dicts."""
    return tuple(frame.toArrow().to_pylist(maps_as_pydicts="strict"))
