"""Hooks of a source for recovery and dead letters: reading the offsets of a batch again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Self

from millstream.connectors.api.source_hooks.connection import SourceConnection
from millstream.connectors.api.values.replay_behaviour import Replayability, ReplayBehaviour

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.api.dead_letters import DeadLetter
    from millstream.connectors.api.values.offsets import OffsetGap, OffsetRange, StartFiles, StartPosition


class SourceOffsets(SourceConnection):
    """Offsets of a source. By default, no batch is read again."""

    place: ClassVar[tuple[str, ...]] = ()
    """Columns with a record's position, for dead letters: topic, partition, offset."""
    is_replayable: ClassVar[bool] = False
    """Whether reading the same offsets again gives the same rows."""

    def replay(self, *, static: bool) -> ReplayBehaviour:
        """Describe what happens to the source's rows when a batch is replayed."""
        if static:
            return ReplayBehaviour(
                Replayability.CONDITIONAL, "it must not change between a batch and its replay"
            )
        if self.is_replayable:
            return ReplayBehaviour(
                Replayability.EXACT, "can be read again from the offsets in the checkpoint"
            )
        return ReplayBehaviour(Replayability.NONE, "cannot replay a lost batch")

    def read_range(self, spark: SparkSession, offsets: OffsetRange, schema: str | None) -> DataFrame | None:
        """Read the rows of one batch again, as a static DataFrame; None if a kind cannot."""
        return None

    def describe_offsets(self, offsets: OffsetRange) -> list[str]:
        """Describe what a batch reads, one clause per part; nothing if it reads nothing new."""
        if offsets.files:
            count = len(offsets.files)
            return (
                [f"file {offsets.files[0]}"]
                if count == 1
                else [f"{count} files, {offsets.files[0]} to {offsets.files[-1]}"]
            )
        return (
            [] if offsets.start == offsets.end else [f"{self.describe()}, {offsets.start} to {offsets.end}"]
        )

    def halves(self, offsets: OffsetRange) -> tuple[OffsetRange, OffsetRange] | None:
        """Split what `read_range` reads into two parts; None for a single record or file."""
        if len(offsets.files) < 2:
            return None
        middle = len(offsets.files) // 2
        first, second = offsets.files[:middle], offsets.files[middle:]
        return replace(offsets, files=first), replace(offsets, files=second)

    def gaps(self, start: str) -> list[OffsetGap]:
        """Return the records from `start` on, in Spark's JSON, that no longer exist. Connects.

        Returns nothing if a kind does not know. Raises `CheckpointMismatch` if the offsets do not exist yet,
        `NotReady` if the system does not respond.
        """
        return []

    def start_files(self, position: StartPosition) -> StartFiles | None:
        """Return what lets a fresh checkpoint begin at a position; None if a kind cannot."""
        return None

    def newest_position(self, spark: SparkSession, schema: str | None) -> StartPosition | None:
        """Return the position after the newest record; None if a kind does not know it. Connects."""
        return None

    def fix_start(self, spark: SparkSession, recorded: Mapping[str, str]) -> tuple[Self, dict[str, str]]:
        """Return the source that begins where a former start has begun, and entries that say so for the next start.

        `recorded` is the source's record of that start. Without entries, the spec says where the source begins, or
        the system remembers it. Connects. Raises `NotReady`.
        """
        return self, {}

    def lenient(self) -> Self:
        """Return the source that continues after missing records; itself if it never stops for them."""
        return self

    def resend(self, topic: str, dead_letters: Sequence[DeadLetter]) -> bool:
        """Send dead letters of this source to a topic of its server; return False if a kind has none.

        Raises `NotReady` if one did not arrive; others may have arrived.
        """
        return False
