"""Hooks of a sink for rules, backfills and tests: which rows replace or delete which."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.spec.base import Spec
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class RowSemantics(Spec):
    """Identity and order of a sink's rows. By default, every row is added and none is replaced."""

    @property
    def row_key(self) -> tuple[str, ...]:
        """Key columns of a row; empty if every row is distinct."""
        return ()

    @property
    def routed_by(self) -> tuple[str, ...]:
        """Columns that decide where a row goes: a folder, a topic, a partition."""
        return ()

    def replaces_table(self, mode: OutputMode) -> bool:
        """Return whether a row replaces the one with the same `row_key`."""
        return bool(self.row_key) and mode is not OutputMode.COMPLETE

    def is_rerun_idempotent(self, mode: OutputMode) -> bool:
        """Return whether a full re-run from a new checkpoint is idempotent."""
        return mode is OutputMode.COMPLETE or self.replaces_table(mode)

    @property
    def orders_by_column(self) -> bool:
        """Whether a column, and not the order of the batches, decides which row of a key is the last."""
        return False

    @property
    def is_sole_writer(self) -> bool:
        """Whether only one query may write to the target. Otherwise each query has its own batch ledger."""
        return False

    @property
    def delete_marker(self) -> tuple[str, str] | None:
        """The setting that marks deletions, and its condition in Spark SQL, true or false for each row."""
        return None

    @property
    def delete_condition(self) -> str | None:
        """Spark SQL condition for rows that delete the row with their key; None if no row does."""
        return None

    def outcome(self, rows: DataFrame) -> DataFrame | None:
        """Compute the sink's content after writing all these rows of its query.

        None if it is the rows themselves, or the last row of each key, in the written columns.
        """
        return None
