"""A table of Spark's catalog, read by the format it was made with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from millstream.connectors.source import Replay, Replays, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class TableSource(Source):
    """A table of Spark's catalog, as a stream or as it stands."""

    kind = "table"
    main = "name"
    static = True
    reread = True

    name: str = Field(min_length=1, examples=["sales.orders"])
    """The table's name, with its catalog and schema where they are not the session's."""
    options: dict[str, str] = Field(default_factory=dict, examples=[{"maxFilesPerTrigger": "10"}])
    """Options of the table's format, by their names in Spark."""

    def read(self, spark: SparkSession, *, static: bool, schema: str | None) -> DataFrame:  # noqa: ARG002
        """The table's own columns; `schema` is not used, for the table knows its own."""
        # By a bare name Spark would take a view of the session for it, such as one named after this very source.
        name = self.name if "." in self.name else f"{spark.catalog.currentDatabase()}.{self.name}"
        return (spark.read if static else spark.readStream).options(**self.options).table(name)

    def replay(self, *, static: bool) -> Replay:
        """What its format gives again, which its name does not tell."""
        if static:
            return Replay(Replays.CONDITIONAL, "its table must not change between a batch and its repetition")
        return Replay(Replays.CONDITIONAL, "its format must give the rows of an offset again, as Delta does")

    def reads_from(self) -> frozenset[str]:
        """Its name in the catalog."""
        return frozenset({f"table {self.name}"})

    def identity(self) -> dict[str, str]:
        """Kind and name."""
        return {"kind": self.kind, "target": self.name}
