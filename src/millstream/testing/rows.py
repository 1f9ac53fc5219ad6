"""Rows and messages of a test file, held against the columns that a source declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.pipeline.describe import nearest
from millstream.pipeline.entries import columns
from millstream.pipeline.model import Keep
from millstream.testing.case import Record
from millstream.testing.form import RecordForm
from millstream.testing.moments import moment
from millstream.testing.types import Kind, kind, misfits, unpacked

if TYPE_CHECKING:
    from millstream.pipeline.document import Path
    from millstream.pipeline.model import SourceEntry
    from millstream.testing.case import Fed, Row
    from millstream.testing.ground import Ground

_KEPT = {
    Keep.KEY: "string",
    Keep.TOPIC: "string",
    Keep.PARTITION: "int",
    Keep.OFFSET: "bigint",
    Keep.TIMESTAMP: "timestamp",
}
RECORD = "record"


def rows(ground: Ground, who: str, value: Any, path: Path) -> tuple[Row, ...]:
    """A list of rows, each columns by name."""
    found = []
    for number, item in enumerate(ground.items(who, value, path)):
        if isinstance(item, dict):
            found.append(item)
        else:
            ground.not_this(f"a row of {who}", "columns with values", item, (*path, number))
    return tuple(found)


def fed(ground: Ground, name: str, entry: SourceEntry, value: Any, path: Path) -> tuple[Fed, ...]:
    """What arrives of one source: rows of its schema, or messages as they came."""
    who = f"source '{name}'"
    types = kinds(entry)
    found: list[Fed] = []
    for number, item in enumerate(ground.items(f"the feed of {who}", value, path)):
        here = (*path, number)
        if not isinstance(item, dict):
            ground.not_this(f"a row of {who}", "columns with values", item, here)
        elif set(item) == {RECORD} and (types is None or RECORD not in types):
            if entry.source.payload:
                found.append(record(ground, item[RECORD], (*here, RECORD)))
            else:
                message = f"{who} gives columns, not messages, and takes no 'record'"
                ground.tell_key("MS003", message, (*here, RECORD), fix="feed columns with values")
        else:
            held(ground, who, types, item, here)
            found.append(item)
    return tuple(found)


def kinds(entry: SourceEntry) -> dict[str, Kind] | None:
    """The type of each column of a source by name in small letters, or None when only Spark can tell."""
    names = columns(entry)
    if names is None:
        return None
    declared = dict(entry.columns or {})
    if entry.columns is None and not entry.source.payload and entry.source.columns:
        return {name.lower(): one for name, one in kind(f"struct<{entry.source.columns}>").fields.items()}
    kept: dict[str, str] = {keep.value: _KEPT.get(keep, "") for keep in entry.keep}
    told = {"value": "string", **kept} if entry.columns is None else {**declared, **kept}
    return {name.lower(): kind(told.get(name, "")) for name in names}


def held(ground: Ground, who: str, types: dict[str, Kind] | None, row: Row, path: Path) -> None:
    """Hold a row against the columns of its source: their names and types."""
    if types is None:
        return
    for column, value in row.items():
        here = (*path, column)
        if column.lower() not in types:
            near = nearest(column, types)
            fix = f"write '{near}'" if near else f"name one of {', '.join(types)}"
            ground.tell_key("MS012", f"{who} has no column '{column}'", here, fix=fix)
            continue
        for odd in misfits(types[column.lower()], value, ()):
            inner = ".".join(map(str, (column, *odd.path)))
            if odd.message:
                wrong = _at(value, odd.path)
                ground.not_this(f"'{inner}' of {who}", odd.message, wrong, (*here, *odd.path), odd.fix)
            else:
                ground.tell_key("MS012", f"{who} has no field '{inner}'", (*here, *odd.path), fix=odd.fix)


def _at(value: Any, path: Path) -> Any:
    """The value at a place inside another."""
    for step in path:
        value = value[step]
    return value


def record(ground: Ground, given: Any, path: Path) -> Record:
    """A message as it came; what is wrong with it is told, and left out."""
    said = ground.known("a record", given, path, RecordForm)
    if not {"value", "value_base64"} & set(said) and isinstance(given, dict):
        ground.tell_key(
            "MS004", "a record has no 'value'", path, fix="add 'value: …', or 'value: null' for none"
        )
    headers = said.get("headers") or {}
    parts = headers if isinstance(headers, list) else [headers]
    named: list[tuple[str, bytes | None]] = []
    for number, part in enumerate(parts):
        here = (*path, "headers", number) if isinstance(headers, list) else (*path, "headers")
        for name, value in ground.mapping("a header", part, here).items():
            named.append((name, _text(ground, f"header '{name}'", value, (*here, name))))
    return Record(
        value=_bytes(ground, said, "value", path),
        key=_bytes(ground, said, "key", path),
        topic=_word(ground, said, "topic", path),
        partition=_number(ground, said, "partition", path) or 0,
        offset=_number(ground, said, "offset", path),
        timestamp=time(ground, "'timestamp' of a record", said["timestamp"], (*path, "timestamp"))
        if said.get("timestamp") is not None
        else None,
        headers=tuple(named),
    )


def _bytes(ground: Ground, said: dict[str, Any], name: str, path: Path) -> bytes | None:
    """The bytes of a field that is given as text or in base64."""
    packed = f"{name}_base64"
    if packed not in said:
        return _text(ground, f"'{name}' of a record", said.get(name), (*path, name))
    if name in said:
        ground.tell_key(
            "MS003", f"a record has both '{name}' and '{packed}'", (*path, packed), fix="keep one of them"
        )
    text = said[packed]
    found = unpacked(text) if isinstance(text, str) else None
    if found is None and text is not None:
        ground.not_this(f"'{packed}' of a record", "text in base64", text, (*path, packed))
    return found


def _text(ground: Ground, who: str, value: Any, path: Path) -> bytes | None:
    if value is not None and not isinstance(value, str):
        fix = f'put it in quotes: "{value}"' if isinstance(value, int | float) else ""
        ground.not_this(who, "text", value, path, fix)
        return None
    return None if value is None else value.encode("utf-8", "replace")


def _word(ground: Ground, said: dict[str, Any], name: str, path: Path) -> str | None:
    value = said.get(name)
    if value is None or isinstance(value, str):
        return value
    ground.not_this(f"'{name}' of a record", "text", value, (*path, name))
    return None


def _number(ground: Ground, said: dict[str, Any], name: str, path: Path) -> int | None:
    return (
        None if said.get(name) is None else count(ground, f"'{name}' of a record", said[name], (*path, name))
    )


def count(ground: Ground, who: str, value: Any, path: Path) -> int | None:
    """A whole number of at least 0 that Spark's long can hold; otherwise a finding, and None."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63:
        return value
    ground.not_this(who, "a whole number of at least 0", value, path)
    return None


def time(ground: Ground, who: str, value: Any, path: Path) -> Any:
    """A moment with its zone; otherwise a finding, and None."""
    try:
        return moment(value)
    except (ValueError, OverflowError):
        ground.not_this(who, "a time like 2026-01-31 12:00:00", value, path)
        return None
