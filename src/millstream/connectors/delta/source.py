"""The Delta source: a table read as a stream of its appends, or as it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from millstream.connectors.dataset import Dataset, of_place
from millstream.connectors.source import Problem, Replay, Replays, Source
from millstream.spec.location import Location

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.asking import Begun, Remark
    from millstream.connectors.elsewhere import Fed, Place


class DeltaSource(Source):
    """A Delta table, in a folder or in Spark's catalog.

    A static table is read anew by every batch: a batch that is repeated may see later rows of it.
    """

    kind = "delta"
    main = "path"
    streams = True
    static = True
    replayable = True
    reread = True

    path: Location | None = Field(default=None, examples=["lake/orders"])
    """The table's folder."""
    table: str | None = Field(default=None, examples=["sales.orders"])
    """The table's name in Spark's catalog, instead of a path."""
    starting_version: int | Literal["latest"] | None = Field(default=None, examples=[12])
    """The table version whose rows come first; `latest` skips what is there; all rows unless given."""
    starting_timestamp: str | None = Field(default=None, examples=["2026-01-31 12:00:00"])
    """The time from whose first version on rows come, instead of a version."""
    change_feed: bool = False
    """Read what changed: each row with `_change_type` (insert, update_preimage, update_postimage, delete),
    `_commit_version` and `_commit_timestamp`. The table needs `delta.enableChangeDataFeed`."""
    max_files_per_trigger: int | None = Field(default=None, gt=0)
    """The most files in one batch; 1000 unless given."""
    max_bytes_per_trigger: str | None = Field(default=None, examples=["1g"])
    """About the most bytes in one batch; a file is never cut. No limit unless given."""
    skip_change_commits: bool = False
    """Pass over commits that change or delete rows; unless set, the stream ends with an error at one."""
    version: int | None = Field(default=None, ge=0)
    """The version of a static table; the latest at each batch unless given."""

    def read(self, spark: SparkSession, *, static: bool, schema: str | None) -> DataFrame:  # noqa: ARG002
        """The table's own columns; `schema` is not used, for the table knows its own."""
        reader = (
            (spark.read if static else spark.readStream)
            .format("delta")
            .options(**self._options(static=static))
        )
        if self.path is not None:
            return reader.load(str(self.path))
        assert self.table is not None
        return reader.table(self.table)

    fed = True

    def elsewhere(self, place: Place) -> Source | None:
        """A table in a folder of its own, read from its first version; None for a feed of changes."""
        if self.change_feed:
            return None
        own = {"path": place.path(str(self.path or self.table)), "table": None}
        return self.model_copy(update={**own, "starting_version": None, "starting_timestamp": None})

    def feed(self, records: Sequence[Fed], number: int, columns: Mapping[str, str]) -> None:  # noqa: ARG002 - appended
        """Append these rows, and make the table with the first of them."""
        from deltalake import write_deltalake  # noqa: PLC0415 - for proofs alone

        from millstream.connectors.files.feeding import table  # noqa: PLC0415 - loads pyarrow

        write_deltalake(str(self.path), table(records, columns), mode="append")

    def replay(self, *, static: bool) -> Replay:
        """A stream goes on from versions; a table is pinned to one by `version` alone."""
        if not static:
            return Replay(Replays.EXACT, "can be read again from the table versions in the checkpoint")
        if self.version is not None:
            return Replay(Replays.EXACT, f"is read at version {self.version}")
        return Replay(Replays.CONDITIONAL, "its table must not change between a batch and its repetition")

    def begins(self) -> str:
        """The starting version."""
        if self.starting_version == "latest":
            return "starts behind what the table holds"
        if self.starting_version is not None:
            return f"starts with version {self.starting_version}"
        if self.starting_timestamp is not None:
            return f"starts with the first version since {self.starting_timestamp}"
        return "starts with all rows that the table holds"

    def problems(self) -> list[Problem]:
        """A missing or doubled place or beginning, and what a change feed does not go with."""
        if self.starting_timestamp is not None and self.starting_version is not None:
            message = "delta has both a starting_version and a starting_timestamp"
            return [Problem("starting_timestamp", message, "keep one of them")]
        if self.change_feed and self.skip_change_commits:
            message = "a change feed tells changes, and skip_change_commits passes over them"
            return [Problem("skip_change_commits", message, "keep one of them")]
        if self.path is None and self.table is None:
            return [
                Problem("path", "delta needs a path or a table", "give the folder: delta: {path: lake/NAME}")
            ]
        if self.path is not None and self.table is not None:
            return [Problem("table", "delta has both a path and a table", "keep one of them")]
        return []

    def limited(self) -> bool:
        """Always: 1000 files a batch unless the settings say another number."""
        return True

    def reads_from(self) -> frozenset[str]:
        """The table's folder, or its name in the catalog."""
        return frozenset({str(self.path or f"table {self.table}")})

    def datasets(self) -> tuple[Dataset, ...]:
        """The table's folder; one of the catalog has no name that others know."""
        return (of_place(str(self.path)),) if self.path else ()

    def identity(self) -> dict[str, str]:
        """Kind and place."""
        return {"kind": self.kind, "target": str(self.path or self.table)}

    def probe(self) -> dict[str, str]:
        """The table's id, so that a table made anew at the same path is recognised. Raises `NotReady`."""
        from millstream.connectors.delta.look import table_id  # noqa: PLC0415 - loads deltalake

        return {} if self.path is None else {"table_id": table_id(self.path)}

    def ask(self, *, static: bool, begun: Sequence[Begun], fresh: Sequence[str]) -> Iterable[Remark]:  # noqa: ARG002
        """Is the table there, and the one that the checkpoints began with?"""
        from millstream.connectors.delta.ask import of_source  # noqa: PLC0415 - loads deltalake

        return of_source(self, static=static, begun=begun)

    def describe(self) -> str:
        """Kind and place."""
        return f"delta {self.path or self.table or ''}".strip()

    def _options(self, *, static: bool) -> dict[str, str]:
        """Spark's options, by Spark's names."""
        if static:
            return {} if self.version is None else {"versionAsOf": str(self.version)}
        named = {
            "startingVersion": self.starting_version,
            "startingTimestamp": self.starting_timestamp,
            "readChangeFeed": True if self.change_feed else None,
            "maxFilesPerTrigger": self.max_files_per_trigger,
            "maxBytesPerTrigger": self.max_bytes_per_trigger,
            "skipChangeCommits": True if self.skip_change_commits else None,
        }
        return {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in named.items()
            if value is not None
        }
