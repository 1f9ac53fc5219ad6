"""Delta source: read a table as a stream of its appends or changes, or as a static table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from millstream.connectors.api.source import Source
from millstream.connectors.api.values.lineage_dataset import LineageDataset, dataset_of_folder
from millstream.connectors.api.values.problem import Problem
from millstream.connectors.api.values.replay_behaviour import Replayability, ReplayBehaviour
from millstream.spec.location import Location

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.api.values.connectivity import CheckpointedSource, ConnectivityFinding
    from millstream.connectors.api.values.sandbox import InputRecord, Sandbox


# Key of the record of a checkpoint.
_FIRST = "first_version"


class DeltaSource(Source):
    """A Delta table, in a folder or in Spark's catalog.

    A static table is read again by every batch, so a replayed batch may see newer rows.
    """

    kind = "delta"
    main = "path"
    can_stream = True
    can_read_once = True
    is_replayable = True
    is_reread_each_batch = True

    path: Location | None = Field(default=None, examples=["lake/orders"])
    """Folder of the table."""
    table: str | None = Field(default=None, examples=["sales.orders"])
    """Name of the table in Spark's catalog, as an alternative to `path`."""
    starting_version: int | Literal["latest"] | None = Field(default=None, examples=[12])
    """Table version to start with; `latest` skips rows that exist at the first start of a new checkpoint. Default:
    start with all existing rows."""
    starting_timestamp: str | None = Field(default=None, examples=["2026-01-31 12:00:00"])
    """Start with the first version since this time, as an alternative to `starting_version`."""
    change_feed: bool = False
    """Read the change data feed: each changed row with `_change_type` (insert, update_preimage, update_postimage,
    delete), `_commit_version` and `_commit_timestamp`. The table needs `delta.enableChangeDataFeed`."""
    max_files_per_trigger: int | None = Field(default=None, gt=0)
    """Maximum number of files per batch. Default: 1000."""
    max_bytes_per_trigger: str | None = Field(default=None, examples=["1g"])
    """Approximate maximum number of bytes per batch; files are not split. Default: no limit."""
    skip_change_commits: bool = False
    """Skip commits that change or delete rows. Otherwise the stream fails at such a commit."""
    version: int | None = Field(default=None, ge=0)
    """Version of a static table. Default: the latest version at each batch."""

    def read(self, spark: SparkSession, *, static: bool, schema: str | None) -> DataFrame:  # noqa: ARG002
        """Read the table with its own columns; `schema` is not used."""
        reader = (
            (spark.read if static else spark.readStream)
            .format("delta")
            .options(**self._options(static=static))
        )
        if self.path is not None:
            return reader.load(str(self.path))
        assert self.table is not None
        return reader.table(self.table)

    is_feedable = True

    def in_sandbox(self, sandbox: Sandbox) -> Source | None:
        """Use a sandbox table, read from its first version; None for a change feed."""
        if self.change_feed:
            return None
        updates = {"path": sandbox.path(str(self.path or self.table)), "table": None}
        return self.model_copy(update={**updates, "starting_version": None, "starting_timestamp": None})

    def feed(self, records: Sequence[InputRecord], number: int, columns: Mapping[str, str]) -> None:  # noqa: ARG002 - appended
        """Append the rows; the first ones create the table."""
        from deltalake import write_deltalake  # noqa: PLC0415 - for proofs alone

        from millstream.connectors.files.sandbox_io import to_arrow_table  # noqa: PLC0415 - loads pyarrow

        write_deltalake(str(self.path), to_arrow_table(records, columns), mode="append")

    def replay(self, *, static: bool) -> ReplayBehaviour:
        """Replay a stream by versions; a static table is exact only with `version`."""
        if not static:
            return ReplayBehaviour(
                Replayability.EXACT, "can be read again from the table versions in the checkpoint"
            )
        if self.version is not None:
            return ReplayBehaviour(Replayability.EXACT, f"is read at version {self.version}")
        return ReplayBehaviour(
            Replayability.CONDITIONAL, "its table must not change between a batch and its replay"
        )

    def begins(self) -> str:
        """Describe the starting version."""
        if self.starting_version == "latest":
            return "starts after the table's existing rows"
        if self.starting_version is not None:
            return f"starts with version {self.starting_version}"
        if self.starting_timestamp is not None:
            return f"starts with the first version since {self.starting_timestamp}"
        return "starts with all rows of the table"

    def problems(self) -> list[Problem]:
        """Check for missing or conflicting table, start and change feed settings."""
        if self.starting_timestamp is not None and self.starting_version is not None:
            message = "delta has both a starting_version and a starting_timestamp"
            return [Problem("starting_timestamp", message, "keep only one of them")]
        if self.change_feed and self.skip_change_commits:
            message = "change_feed reads changes, but skip_change_commits skips them"
            return [Problem("skip_change_commits", message, "keep only one of them")]
        if self.path is None and self.table is None:
            return [
                Problem("path", "delta needs a path or a table", "set the folder: delta: {path: lake/NAME}")
            ]
        if self.path is not None and self.table is not None:
            return [Problem("table", "delta has both 'path' and 'table'", "keep only one of them")]
        return []

    def has_batch_limit(self) -> bool:
        """Return True: a batch reads at most 1000 files unless the settings set another number."""
        return True

    def reads_from(self) -> frozenset[str]:
        """Return the table's folder, or its name in the catalog."""
        return frozenset({str(self.path or f"table {self.table}")})

    def datasets(self) -> tuple[LineageDataset, ...]:
        """Return the table's folder; a catalog table has no lineage name."""
        return (dataset_of_folder(str(self.path)),) if self.path else ()

    def identity(self) -> dict[str, str]:
        """Return kind and table."""
        return {"kind": self.kind, "target": str(self.path or self.table)}

    def probe(self) -> dict[str, str]:
        """Return the table's id, which changes if the table is recreated. Raises `NotReady`."""
        from millstream.connectors.delta.latest_rows import table_id  # noqa: PLC0415 - loads deltalake

        return {} if self.path is None else {"table_id": table_id(self.path)}

    def fix_start(
        self, spark: SparkSession, recorded: Mapping[str, str]
    ) -> tuple[DeltaSource, dict[str, str]]:
        """Begin at the version that `latest` was at the first start. Delta decides it again until it has offsets."""
        if self.starting_version != "latest":
            return self, {}
        newest = self._newest_version(spark)
        first = int(recorded.get(_FIRST, newest + 1))
        # Until the version exists, `latest` is the same.
        source = self if newest < first else self.model_copy(update={"starting_version": first})
        return source, {_FIRST: str(first)}

    def _newest_version(self, spark: SparkSession) -> int:
        from millstream.connectors.delta.latest_rows import newest_version  # noqa: PLC0415 - loads deltalake

        if self.path is not None:
            return newest_version(self.path)
        history = spark.sql(f"DESCRIBE HISTORY {self.table} LIMIT 1")
        return int(history.collect()[0]["version"])

    def ask(
        self,
        *,
        static: bool,
        checkpoints: Sequence[CheckpointedSource],
        fresh: Sequence[str],  # noqa: ARG002
    ) -> Iterable[ConnectivityFinding]:
        """Check that the table exists and is the one of the checkpoints."""
        from millstream.connectors.delta.connectivity import check_source  # noqa: PLC0415 - loads deltalake

        return check_source(self, static=static, checkpoints=checkpoints)

    def describe(self) -> str:
        """Describe as kind and table."""
        return f"delta {self.path or self.table or ''}".strip()

    def _options(self, *, static: bool) -> dict[str, str]:
        """Return Spark's reader options."""
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
