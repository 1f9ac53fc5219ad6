"""Check a Delta table for `check --connect`: its existence, its identity, and its columns."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from millstream.connectors.api.values.connectivity import CheckpointedSource, ConnectivityFinding
from millstream.connectors.delta.commit.column_casts import (
    NUMBERS,
    TYPE_WIDENING,
    accepts,
    describe_key_loss,
    describe_loss,
    is_widened,
)
from millstream.connectors.delta.commit.delta_rs_paths import require_delta_rs
from millstream.connectors.delta.commit.log import TableSnapshot, require_compatible
from millstream.connectors.delta.folder_check import require_writable
from millstream.diagnostics.failure import NotReady
from millstream.diagnostics.finding import Severity
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from millstream.connectors.delta.sink import DeltaSink
    from millstream.connectors.delta.source import DeltaSource
    from millstream.spec.location import Location

_DDL = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}
# Number of commits of a table's history that are searched for changes in place.
_LATEST = 20
_CHANGES = ("UPDATE", "DELETE", "MERGE", "TRUNCATE")


def check_source(
    source: DeltaSource, *, static: bool, checkpoints: Sequence[CheckpointedSource]
) -> Iterator[ConnectivityFinding]:
    """Check the table of a source. One of a catalog or on S3 is not checked, because that needs Spark."""
    if source.path is None or source.path.is_on_s3:
        return
    table = _open(source.path)
    if table is None:
        raise NotReady(
            f"there is no Delta table at {source.path}",
            "correct the path, or run the pipeline that creates it",
        )
    newest = table.version()
    version = source.version if static else source.starting_version
    if isinstance(version, int) and version > newest:
        field = "version" if static else "starting_version"
        yield ConnectivityFinding(
            "MS566",
            f"Delta table {source.path} is at version {newest}, but {field} is {version}",
            field,
            "Spark ends a query with an error if it starts at a version that does not exist",
            f"set a version up to {newest}",
        )
    current_id = str(table.metadata().id)
    for query in checkpoints:
        if query.identity.get("table_id", current_id) != current_id:
            yield ConnectivityFinding(
                "MS564",
                f"the Delta table at {source.path} was recreated since query '{query.query}' started",
                "path",
                "its checkpoint has versions of the old table: Spark fails to resume, or skips rows",
                f"start the query with an empty checkpoint: move the folder of '{query.query}' away",
            )
    accepts_changes = static or source.skip_change_commits or source.change_feed
    if not accepts_changes and (change := _latest_change(table)):
        yield ConnectivityFinding(
            "MS574",
            f"the Delta table at {source.path} is changed in place: its version {change[0]} is a {change[1]}",
            "path",
            "a stream fails at a commit that changes or deletes rows",
            "set skip_change_commits to skip such commits, or read a table that is only appended to",
            Severity.WARNING,
        )


def check_sink(
    sink: DeltaSink, columns: Mapping[str, str] | None, mode: OutputMode
) -> Iterator[ConnectivityFinding]:
    """Find what makes the table reject the query's rows."""
    # Only Spark has the key of a bucket. Whether it may write there is asked once Spark has started.
    if sink.path is None or sink.path.is_on_s3:
        return
    try:
        require_writable(sink.path)
    except NotReady as error:
        yield ConnectivityFinding("MS567", error.what, "path", fix=error.fix)
        return
    table = _open(sink.path)
    if table is None:
        return
    table_columns = {
        field["name"]: _ddl(field["type"]) for field in json.loads(table.schema().to_json())["fields"]
    }
    snapshot = TableSnapshot(
        table.version(), tuple(table_columns), tuple(table.metadata().partition_columns), None
    )
    try:
        require_compatible(snapshot, sink, sink.table_columns(list(columns)) if columns else [])
    except NotReady as error:
        yield ConnectivityFinding("MS568", error.what, "path", fix=error.fix)
    lower = {name.lower(): kind for name, kind in table_columns.items()}
    for name in sink.merge_on:
        if name.lower() not in lower and not sink.merge_schema:
            yield ConnectivityFinding(
                "MS568",
                f"Delta table {sink.target()} has no column '{name}', which merge_on contains",
                "merge_on",
                fix="correct merge_on, or write to another path",
            )
    merges = bool(sink.row_key) and mode is not OutputMode.COMPLETE
    keys = {name.lower() for name in sink.row_key}
    widening = (table.metadata().configuration or {}).get(TYPE_WIDENING, "false")
    may_widen = sink.merge_schema and widening.lower() == "true"
    for name, query_type in {} if columns is None else columns.items():
        kind = lower.get(name.lower())
        if not kind or (may_widen and is_widened(kind, query_type)):
            continue
        loss = describe_loss(kind, query_type) if merges else ""
        fix = f"cast it in the view: CAST({name} AS {kind.upper()})"
        if merges and not loss and name.lower() in keys and (loss := describe_key_loss(kind, query_type)):
            fix = "write to another path, or create the table again with the type of the query"
        if not loss and (sink.merge_schema or accepts(kind, query_type, merges=merges)):
            continue
        # A string is cast to the column's type, and fails if it cannot be parsed.
        casts_text = merges and query_type == "string" and kind in {"date", "timestamp", "boolean", *NUMBERS}
        yield ConnectivityFinding(
            "MS568",
            f"column '{name}' of Delta table {sink.target()} is {kind}, but the query's column is "
            f"{query_type}",
            "path",
            f"the first string that is not a valid {kind} stops the query"
            if casts_text
            else f"the run refuses to start, because a merge would cast each value: {loss}"
            if loss
            else "Delta rejects the first batch",
            fix,
            Severity.WARNING if casts_text else Severity.ERROR,
        )


def _open(path: Location) -> DeltaTable | None:
    """Open the table; None if there is none. Raises `NotReady` if it cannot be read."""
    where = str(path.local or path)
    if path.local is not None and not path.local.exists():
        return None
    require_delta_rs(path)
    try:
        return DeltaTable(where)
    except TableNotFoundError:
        return None
    except (DeltaError, OSError) as error:
        reason = str(error).split("\n")[0]
        raise NotReady(
            f"Delta table {where} cannot be read: {reason}", "check the path and its permissions"
        ) from error


def _latest_change(table: DeltaTable) -> tuple[int, str] | None:
    """Return version and operation of the latest commit that changed or deleted rows."""
    for commit in table.history(_LATEST):
        operation = str(commit.get("operation", "")).upper()
        metrics: Any = commit.get("operationMetrics") or {}
        # A merge that only adds rows removes no files.
        removed_files = int(metrics.get("numTargetFilesRemoved", metrics.get("numRemovedFiles", 1)) or 0)
        if operation.startswith(_CHANGES) and removed_files:
            return int(commit["version"]), operation
    return None


def _ddl(kind: Any) -> str:
    """Convert a type of Delta's schema to Spark DDL; only the outer name of a nested type."""
    return _DDL.get(kind, kind) if isinstance(kind, str) else str(kind.get("type"))
