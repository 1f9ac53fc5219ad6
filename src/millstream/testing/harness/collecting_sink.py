"""Writers that replace sinks in a test: they collect rows, and crash where a test asks for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.connectors.api.writer import SinkIdentity, Writer, WriteResult
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.testing.model import Row

BEFORE, AFTER = "before_sink", "after_sink"
"""The crash points other than the names of sinks."""


class SimulatedCrash(Exception):
    """A crash that a test asked for."""


@dataclass
class CollectedRows:
    """The rows that one sink has received, by batch. They survive restarts, as in a real sink."""

    mode: OutputMode
    batches: set[int] = field(default_factory=set)
    fresh: list[tuple[Row, ...]] = field(default_factory=list)
    """The rows of each batch since the last `take`."""

    def take(self) -> tuple[Row, ...]:
        """Return the rows since the last call; in complete mode, all rows of the latest batch, even if not new."""
        if self.mode is OutputMode.COMPLETE:
            del self.fresh[:-1]
            return self.fresh[-1] if self.fresh else ()
        fresh, self.fresh = self.fresh, []
        return tuple(row for rows in fresh for row in rows)


class Collector(Writer):
    """A writer that stores the rows of each batch once."""

    def __init__(
        self,
        identity: SinkIdentity,
        collected: CollectedRows,
        collect: Callable[[DataFrame, int], tuple[Row, ...]],
    ) -> None:
        super().__init__(identity)
        self._collected = collected
        self._collect = collect

    def has_batch(self, batch_id: int) -> bool:
        """Return whether the batch was collected."""
        return batch_id in self._collected.batches

    def write(self, frame: DataFrame, batch_id: int) -> WriteResult:
        """Collect one batch."""
        if self.has_batch(batch_id):
            return WriteResult(is_skipped=True)
        rows = self._collect(frame, batch_id)
        self._collected.fresh.append(rows)
        self._collected.batches.add(batch_id)
        return WriteResult(len(rows))


class CrashingWriter(Writer):
    """A writer that crashes the query after a write, if a crash is planned."""

    def __init__(self, inner: Writer, is_crash_due: Callable[[], bool]) -> None:
        super().__init__(inner.identity)
        self._inner = inner
        self._is_crash_due = is_crash_due
        self.passes = inner.passes

    def open(self, spark: SparkSession, schema: StructType) -> None:
        """Open the writer."""
        self._inner.open(spark, schema)

    def has_batch(self, batch_id: int) -> bool:
        """Return whether the sink has the batch."""
        return self._inner.has_batch(batch_id)

    def write(self, frame: DataFrame, batch_id: int) -> WriteResult:
        """Write one batch, then crash if that is planned."""
        result = self._inner.write(frame, batch_id)
        if self._is_crash_due():
            raise SimulatedCrash(f"the run crashed after a sink wrote batch {batch_id}")
        return result

    def close(self) -> None:
        """Release the resources of the writer."""
        self._inner.close()


def collect_rows(frame: DataFrame) -> tuple[Row, ...]:
    """Return the rows of a frame as mappings: instants in UTC, structs and maps as dicts."""
    return tuple(frame.toArrow().to_pylist(maps_as_pydicts="strict"))
