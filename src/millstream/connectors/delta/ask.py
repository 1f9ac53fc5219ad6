"""What `check --connect` asks a lake: is the table there, is it the one that was read, does it take the columns?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from millstream.connectors.asking import Begun, Remark
from millstream.connectors.delta.log import Look, fit
from millstream.connectors.delta.place import writable
from millstream.diagnostics.failure import NotReady
from millstream.diagnostics.finding import Severity
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from millstream.connectors.delta.sink import DeltaSink
    from millstream.connectors.delta.source import DeltaSource
    from millstream.spec.location import Location

_DDL = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}
_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint", "float", "double", "decimal"})
# What MERGE casts among itself; an append takes a column's own type only. Tried pair by pair on Delta 4.4.
_CAST = (
    _NUMBERS | {"boolean"},
    _NUMBERS | {"timestamp"},
    frozenset({"date", "timestamp", "timestamp_ntz"}),
    frozenset({"string", "binary"}),
)
# So many commits of a table's history are looked through for changes in place.
_LATEST = 20
_CHANGES = ("UPDATE", "DELETE", "MERGE", "TRUNCATE")


def of_source(source: DeltaSource, *, static: bool, begun: Sequence[Begun]) -> Iterator[Remark]:
    """What a table is not. A table that only a catalog knows is not asked: that needs Spark."""
    if source.path is None:
        return
    table = _open(source.path)
    if table is None:
        raise NotReady(
            f"there is no Delta table at {source.path}", "correct the path, or run the pipeline that makes it"
        )
    newest = table.version()
    wanted = source.version if static else source.starting_version
    if isinstance(wanted, int) and wanted > newest:
        field = "version" if static else "starting_version"
        yield Remark(
            "MS566",
            f"Delta table {source.path} is at version {newest}, and {field} says {wanted}",
            field,
            "Spark ends a query that is to start at a version that is not there",
            f"give a version up to {newest}",
        )
    here = str(table.metadata().id)
    for one in begun:
        if one.told.get("table_id", here) != here:
            yield Remark(
                "MS564",
                f"the Delta table at {source.path} was made anew since query '{one.query}' began",
                "path",
                "its checkpoint holds versions of the old table: Spark refuses to go on, or passes over rows",
                f"start the query with an empty checkpoint: move the folder of '{one.query}' away",
            )
    if not static and not source.skip_change_commits and (change := _changed(table)):
        yield Remark(
            "MS574",
            f"the Delta table at {source.path} is changed in place: its version {change[0]} is a {change[1]}",
            "path",
            "a stream ends with an error at a commit that changes or deletes rows",
            "set skip_change_commits to pass over such commits, or read a table that is only added to",
            Severity.WARNING,
        )


def of_sink(sink: DeltaSink, columns: Mapping[str, str] | None, mode: OutputMode) -> Iterator[Remark]:
    """What a table will refuse."""
    if sink.path is None:
        return
    try:
        writable(sink.path)
    except NotReady as refused:
        yield Remark("MS567", refused.what, "path", fix=refused.fix)
        return
    table = _open(sink.path)
    if table is None:
        return
    held = {field["name"]: _ddl(field["type"]) for field in json.loads(table.schema().to_json())["fields"]}
    look = Look(table.version(), tuple(held), tuple(table.metadata().partition_columns), None)
    try:
        fit(look, sink, sink.held_columns(list(columns)) if columns else [])
    except NotReady as refused:
        yield Remark("MS568", refused.what, "path", fix=refused.fix)
    lower = {name.lower(): kind for name, kind in held.items()}
    for name in sink.merge_on:
        if name.lower() not in lower and not sink.merge_schema:
            yield Remark(
                "MS568",
                f"Delta table {sink.target()} has no column '{name}', which merge_on names",
                "merge_on",
                fix="correct merge_on, or write to another path",
            )
    merges = bool(sink.row_key) and mode is not OutputMode.COMPLETE
    for name, given in {} if sink.merge_schema or columns is None else columns.items():
        kind = lower.get(name.lower())
        if not kind or _takes(kind, given, merges=merges):
            continue
        # A text is cast to what the column is, and fails where it is none.
        some = merges and given == "string" and kind in {"date", "timestamp", "boolean", *_NUMBERS}
        yield Remark(
            "MS568",
            f"column '{name}' of Delta table {sink.target()} is {kind}, and the query gives {given}",
            "path",
            f"the first text that is no {kind} ends the query" if some else "Delta refuses the first batch",
            f"cast it in the view: CAST({name} AS {kind.upper()})",
            Severity.WARNING if some else Severity.ERROR,
        )


def _open(path: Location) -> DeltaTable | None:
    """The table, or None when there is none. Raises `NotReady` for one that cannot be read."""
    where = str(path.local or path)
    if path.local is not None and not path.local.exists():
        return None
    try:
        return DeltaTable(where)
    except TableNotFoundError:
        return None
    except (DeltaError, OSError) as error:
        said = str(error).split("\n")[0]
        raise NotReady(
            f"Delta table {where} cannot be read: {said}", "check the path and its rights"
        ) from error


def _changed(table: DeltaTable) -> tuple[int, str] | None:
    """The newest of the latest commits that changed or deleted rows: its version and what it was."""
    for commit in table.history(_LATEST):
        operation = str(commit.get("operation", "")).upper()
        figures: Any = commit.get("operationMetrics") or {}
        # A merge that only adds rows leaves all files as they were.
        touched = int(figures.get("numTargetFilesRemoved", figures.get("numRemovedFiles", 1)) or 0)
        if operation.startswith(_CHANGES) and touched:
            return int(commit["version"]), operation
    return None


def _ddl(kind: Any) -> str:
    """A type of Delta's schema as Spark's DDL; only the outer name of one that holds others."""
    return _DDL.get(kind, kind) if isinstance(kind, str) else str(kind.get("type"))


def _takes(held: str, given: str, *, merges: bool) -> bool:
    """Does a column take every value of this type? What is inside a type that holds others is left to Delta."""
    here, there = held.partition("(")[0], given.partition("<")[0].partition("(")[0]
    if there in ("void", "char", "varchar"):
        return True
    if not merges:
        return held == given or (here == there and here != "decimal")
    return here in (there, "string") or any({here, there} <= family for family in _CAST)
