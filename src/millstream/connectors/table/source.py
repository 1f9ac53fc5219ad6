"""Table source: a table of Spark's catalog in any format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from millstream.connectors.api.source import Source
from millstream.connectors.api.values.replay_behaviour import Replayability, ReplayBehaviour

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class TableSource(Source):
    """A table of Spark's catalog, as a stream or as a static table."""

    kind = "table"
    main = "name"
    can_read_once = True
    is_reread_each_batch = True

    name: str = Field(min_length=1, examples=["sales.orders"])
    """Name of the table, with catalog and schema if they are not the session's."""
    options: dict[str, str] = Field(default_factory=dict, examples=[{"maxFilesPerTrigger": "10"}])
    """Options of the table's format, by their names in Spark."""

    def read(self, spark: SparkSession, *, static: bool, schema: str | None) -> DataFrame:  # noqa: ARG002
        """Read the table with its own columns; `schema` is not used."""
        # Spark would resolve a plain name to a view of the session, such as the view of this source.
        name = self.name if "." in self.name else f"{spark.catalog.currentDatabase()}.{self.name}"
        return (spark.read if static else spark.readStream).options(**self.options).table(name)

    def replay(self, *, static: bool) -> ReplayBehaviour:
        """Depend on the table's format, which its name does not show."""
        if static:
            return ReplayBehaviour(
                Replayability.CONDITIONAL, "its table must not change between a batch and its replay"
            )
        return ReplayBehaviour(
            Replayability.CONDITIONAL,
            "its format must be able to replay the rows of an offset, as Delta does",
        )

    def reads_from(self) -> frozenset[str]:
        """Return the table's name in the catalog."""
        return frozenset({f"table {self.name}"})

    def identity(self) -> dict[str, str]:
        """Return kind and name."""
        return {"kind": self.kind, "target": self.name}
