"""Hooks of a writer for recovery: the batches that its sink has."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from millstream.connectors.api.batch_ledger import LedgerEntry
    from millstream.connectors.api.writer import SinkIdentity


class BatchLedger:
    """Ledger of a writer's batches. By default, the sink has none."""

    identity: SinkIdentity

    has_checksums: bool = False
    """Whether the sink records a checksum of each batch's rows."""
    has_ledger: bool = False
    """Whether the sink records its batches, so that a missing batch is noticed."""
    skips_empty: bool = False
    """Whether a batch without rows is left out of the ledger. The checkpoint then records such batches."""

    def last_committed_batches(self, spark: SparkSession) -> tuple[LedgerEntry, ...]:
        """Return the last batch that each writer of this query committed to this target, including this writer.

        Called before `open`, so that a start that is refused claims nothing. Returns nothing if the kind has no
        ledger or the target is empty. Raises `NotReady` if the sink is unreachable.
        """
        return ()

    def verify_ledger(self, spark: SparkSession, judge: Callable[[Sequence[LedgerEntry]], None]) -> None:
        """Verify the ledger with `judge` before `open`, or once a sink that may be offline is back."""
        judge(self.last_committed_batches(spark))

    def newest(self, spark: SparkSession) -> LedgerEntry | None:
        """Return the last batch of this writer, waiting for batches that `last_committed_batches` misses.

        Called before `open`, if batches seem to be missing. Raises as `last_committed_batches` does.
        """
        return next(
            (entry for entry in self.last_committed_batches(spark) if entry.writer == self.identity.key), None
        )

    def entry(self, batch_id: int) -> LedgerEntry | None:
        """Return the ledger entry of this writer's batch, after `open`; None if it is unknown."""
        return None

    def has_batch(self, batch_id: int) -> bool:
        """Return whether this sink has committed the batch; False if that is unknown."""
        return False
