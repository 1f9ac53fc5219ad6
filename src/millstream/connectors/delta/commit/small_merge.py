"""Merge a small batch into a small local table with delta-rs, in one commit with the batch id.

Spark's merge of two rows takes eight jobs. delta-rs does the same in some milliseconds, as long as the table uses no
feature that delta-rs does not honour and no value that the two compare differently.
"""

from __future__ import annotations

import json
import re
import time
from enum import Enum
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import (
    ColumnProperties,
    CommitProperties,
    DeltaTable,
    Transaction,
    WriterProperties,
)

from millstream.connectors.delta.commit.delta_rs_paths import is_misread
from millstream.connectors.delta.commit.limits import SMALL_BATCH, SMALL_TABLE
from millstream.connectors.delta.commit.maintenance import WITHOUT_HOOKS, TableMaintenance
from millstream.spark.cluster.stored_rows import is_too_large_for_driver

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from millstream.connectors.delta.sink import DeltaSink

MOST_ROWS, MOST_TABLE_BYTES = SMALL_BATCH, SMALL_TABLE

# Protocol features that change nothing for a writer that only adds and removes whole files.
_FEATURES = frozenset({"appendOnly", "invariants"})
_READER_VERSION, _WRITER_VERSION, _FEATURE_WRITER_VERSION = 1, 2, 7
# Table properties that delta-rs honours, or that do not concern a merge.
_PROPERTIES = frozenset(
    {
        "delta.checkpointInterval",
        "delta.deletedFileRetentionDuration",
        "delta.enableExpiredLogCleanup",
        "delta.logRetentionDuration",
        "delta.minReaderVersion",
        "delta.minWriterVersion",
        "delta.setTransactionRetentionDuration",
    }
)
_OFF = frozenset(
    {
        "delta.appendOnly",
        "delta.enableChangeDataFeed",
        "delta.enableDeletionVectors",
        "delta.enableRowTracking",
    }
)

# Types that both compare in the same way. Not floating-point numbers, for NaN, nor decimals, whose bounds delta-rs
# stores as floating-point numbers.
_KEY_TYPES = frozenset({"byte", "short", "integer", "long", "string", "date", "timestamp", "boolean"})
# Types whose bounds in the log would be inexact, or leave out NaN, which Spark sorts last.
_WITHOUT_BOUNDS = re.compile(r"float|double|binary|decimal\(\d+,\d+\)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MILLISECOND = 1000


BY_DELTA_RS = "delta-rs"
"""The way of a batch that was merged without Spark, as events name it."""


class MergeOutcome(Enum):
    """What became of an attempt."""

    COMMITTED = "committed"
    UNCHANGED = "unchanged"
    """No row of the table is concerned, as with deletions of keys that it does not have. delta-rs makes no commit."""
    ALREADY_THERE = "already there"
    """The table's log has this batch or a later one."""
    UNFIT = "unfit"
    """The batch or the table needs Spark's merge. Nothing was written."""
    UNKNOWN = "unknown"
    """The attempt failed. The log has to be read again, to see whether it has the batch."""


class SmallMerge:
    """Merges of one sink's small batches. The caller holds the table's lock during `commit`."""

    def __init__(
        self,
        folder: Path,
        keys: Sequence[str],
        mark: str,
        deletion: str,
        maintenance: TableMaintenance | None = None,
    ) -> None:
        self._folder, self._keys, self._mark, self._deletion = folder, tuple(keys), mark, deletion
        self._maintenance = maintenance

    @classmethod
    def of(
        cls, sink: DeltaSink, mark: str, deletion: str, maintenance: TableMaintenance | None
    ) -> SmallMerge | None:
        """Return the small merges of a sink, or None if its table is remote, of a catalog, or built from changes.

        Nor are there any in a folder that delta-rs would misread.

        `deletion` is the condition in Spark SQL for rows that delete others, `mark` a name for a column with it.
        """
        folder = None if sink.path is None else sink.path.local
        if folder is None or sink.cdc or is_misread(folder):
            return None
        return cls(folder, sink.merge_on, mark, deletion, maintenance)

    def collect(self, frame: DataFrame) -> pa.Table | None:
        """Execute the batch and return its rows, or None if there are many or Spark has to write them.

        One row more than `MOST_ROWS` comes to this process at most.
        """
        if not _has_plain_columns(frame.schema, self._keys):
            return None
        marked = frame.selectExpr("*", f"{self._deletion} AS `{self._mark}`")
        try:
            rows = marked.limit(MOST_ROWS + 1).toArrow()
        except Exception as error:
            # Few rows, but of such a size that Spark refuses to bring them to this process.
            if not is_too_large_for_driver(error):
                raise
            return None
        return None if rows.num_rows > MOST_ROWS else _in_utc(rows)

    def commit(self, rows: pa.Table, schema: StructType, commit_options: Mapping[str, str]) -> MergeOutcome:
        """Make one attempt to merge the rows. `commit_options` are the entries of the batch for the log."""
        if not _has_unique_keys(rows, self._keys):
            return MergeOutcome.UNFIT
        writer, batch_id = commit_options["txnAppId"], int(commit_options["txnVersion"])
        try:
            table = DeltaTable(str(self._folder))
            is_fit = not unfitness(table, schema)
            last = table.transaction_version(writer)
        except Exception:  # noqa: BLE001 - deltalake raises its own errors and Python's; Spark may read the table
            return MergeOutcome.UNFIT
        if not is_fit:
            return MergeOutcome.UNFIT
        if last is not None and last >= batch_id:
            return MergeOutcome.ALREADY_THERE
        properties = CommitProperties(
            custom_metadata={"userMetadata": commit_options["userMetadata"]},
            # The lock keeps this machine's writers away. Any other one wins, and the log is read again.
            max_commit_retries=0,
            app_transactions=[Transaction(writer, batch_id, int(time.time() * 1000))],
        )
        version = table.version()
        try:
            self._merge(table, rows, schema, properties)
        except Exception:  # noqa: BLE001 - deltalake raises its own errors and Python's; Spark's merge tells the reason
            return MergeOutcome.UNKNOWN
        if table.version() == version:
            return MergeOutcome.UNCHANGED
        if self._maintenance is not None:
            self._maintenance.run_if_due(table, exact_bounds(table))
        return MergeOutcome.COMMITTED

    def _merge(
        self, table: DeltaTable, rows: pa.Table, schema: StructType, properties: CommitProperties
    ) -> None:
        columns = {_quote(name): f"come.{_quote(name)}" for name in schema.names}
        is_deletion = f"come.{_quote(self._mark)}"
        merger = table.merge(
            rows,
            " AND ".join(f"held.{_quote(key)} = come.{_quote(key)}" for key in self._keys),
            source_alias="come",
            target_alias="held",
            # The bounds of the batch's keys then decide which files are read at all.
            streamed_exec=False,
            writer_properties=exact_bounds(table),
            commit_properties=properties,
            post_commithook_properties=None if self._maintenance is None else WITHOUT_HOOKS,
        )
        merger = merger.when_matched_delete(is_deletion).when_matched_update(columns)
        merger.when_not_matched_insert(columns, predicate=f"NOT {is_deletion}").execute()


def unfitness(table: DeltaTable, schema: StructType) -> str:
    """Return why a table needs Spark's merge of rows with these columns; empty if it does not."""
    if reason := layout_unfitness(table):
        return reason
    batch_types = {field["name"]: field["type"] for field in schema.jsonValue()["fields"]}
    if {field["name"]: field["type"] for field in _fields(table)} != batch_types:
        return "its columns or their types differ from the query's"
    actions: Any = pa.table(table.get_add_actions(flatten=True))
    size = pc.sum(actions["size_bytes"]).as_py() or 0
    return f"it has more than {MOST_TABLE_BYTES >> 20} MiB" if size > MOST_TABLE_BYTES else ""


def layout_unfitness(table: DeltaTable) -> str:
    """Return why only Spark may write files of a table; empty if delta-rs may, with `exact_bounds`."""
    protocol, metadata = table.protocol(), table.metadata()
    features = {*(protocol.writer_features or ()), *(protocol.reader_features or ())}
    is_plain_writer = protocol.min_writer_version <= _WRITER_VERSION
    if protocol.min_reader_version > _READER_VERSION or not (
        is_plain_writer or (protocol.min_writer_version == _FEATURE_WRITER_VERSION and features <= _FEATURES)
    ):
        return "its protocol has other features"
    if metadata.partition_columns:
        return "it is partitioned"
    if name := _unknown_property(metadata.configuration):
        return f"it has the property {name}"
    for field in _fields(table):
        if not field["nullable"] or any(
            not key.startswith("spark.") and key != "comment" for key in field["metadata"]
        ):
            return f"column '{field['name']}' has a constraint"
        if not _is_plain(field["type"]):
            return f"column '{field['name']}' has a type that delta-rs may write differently"
    return ""


def exact_bounds(table: DeltaTable) -> WriterProperties:
    """Return Parquet settings that leave out bounds of columns which Spark would misread."""
    none = ColumnProperties(statistics_enabled="NONE")
    columns = {
        field["name"]: none for field in _fields(table) if _WITHOUT_BOUNDS.fullmatch(str(field["type"]))
    }
    return WriterProperties(compression="SNAPPY", column_properties=columns)


def _fields(table: DeltaTable) -> list[dict[str, Any]]:
    """Return the table's columns, as its log has them."""
    fields: list[dict[str, Any]] = json.loads(table.schema().to_json())["fields"]
    return fields


def _is_plain(kind: object) -> bool:
    """Return whether delta-rs writes values of a type as Spark does; `kind` is the type in Spark's JSON."""
    return isinstance(kind, str) and (kind in _KEY_TYPES or bool(_WITHOUT_BOUNDS.fullmatch(kind)))


def _unknown_property(configuration: Mapping[str, str]) -> str:
    """Return a property that may change what a merge has to do, or an empty string."""
    for name, value in configuration.items():
        is_off = name in _OFF and value.lower() == "false"
        if name.startswith("delta.") and name not in _PROPERTIES and not is_off:
            return name
    return ""


def _has_plain_columns(schema: StructType, keys: Sequence[str]) -> bool:
    """Return whether names and types are such that delta-rs writes and compares them as Spark does."""
    types = {field["name"]: field["type"] for field in schema.jsonValue()["fields"]}
    return all(_is_plain(kind) and _NAME.fullmatch(name) for name, kind in types.items()) and all(
        types.get(key) in _KEY_TYPES for key in keys
    )


def _has_unique_keys(rows: pa.Table, keys: Sequence[str]) -> bool:
    """Return whether each row has its own key without NULL, and with times that the log's bounds have exactly.

    Spark stores the bounds of a file in whole milliseconds, so that a finer time may lie outside its file's bounds.
    """
    for key in keys:
        column = rows[key]
        if column.null_count:
            return False
        if pa.types.is_timestamp(column.type):
            micros = column.cast(pa.int64())
            if pc.any(
                pc.not_equal(pc.multiply(pc.divide(micros, _MILLISECOND), _MILLISECOND), micros)
            ).as_py():
                return False
    return bool(rows.group_by(list(keys)).aggregate([]).num_rows == rows.num_rows)


def _in_utc(rows: pa.Table) -> pa.Table:
    """Return the same rows with instants in UTC, as the table has them, whatever zone the session has."""
    utc = pa.timestamp("us", "UTC")
    fields = [
        field.with_type(utc) if pa.types.is_timestamp(field.type) and field.type.tz else field
        for field in rows.schema
    ]
    return rows.cast(pa.schema(fields))


def _quote(name: str) -> str:
    return f'"{name}"'
