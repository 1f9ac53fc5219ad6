"""Hooks of a sink for `show`, tests, proofs and backfills: the rows that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.spec.base import Spec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.api.values.event_time_range import EventTimeRange
    from millstream.spec.output_mode import OutputMode


class SinkContents(Spec):
    """Reads a sink's rows. By default, they cannot be read."""

    def rows(self, limit: int) -> tuple[list[str], list[list[object]]] | None:
        """Read the latest rows without Spark for `show`, as column names and rows; None if a kind cannot."""
        return None

    def read_all(self, spark: SparkSession, schema: StructType, mode: OutputMode) -> DataFrame | None:
        """Read all rows as a reader sees them, with names and types of `schema`; None if unknown.

        If a later version of a row replaces an earlier one for readers, return the last versions.
        """
        return None

    def read_time_range(
        self, spark: SparkSession, schema: StructType, mode: OutputMode, time_range: EventTimeRange
    ) -> DataFrame | None:
        """Read at least the rows of a range, as `read_all` does, from a table of any size."""
        return self.read_all(spark, schema, mode)

    def stored_values(self, schema: StructType) -> dict[str, str]:
        """Return Spark SQL for the value that `read_all` reads after a column's value was written, by column.

        Columns whose values are read as they were written are missing.
        """
        return {}

    def versions(self, spark: SparkSession, schema: StructType) -> DataFrame | None:
        """Read every version of a row, for update mode without a key, with a column `batch` to order them.

        Columns are those of `schema` and `batch`; None if a kind stores no versions.
        """
        return None
