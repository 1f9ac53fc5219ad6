"""Parse rows and messages of a test file, and check them against the columns of their source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.pipeline.introspection import find_nearest
from millstream.pipeline.load.source_validation import known_columns
from millstream.pipeline.model import KeptColumn
from millstream.testing.files.schema import RecordForm
from millstream.testing.model import Record
from millstream.testing.values.timestamps import parse_timestamp
from millstream.testing.values.type_check import ParsedType, decode_base64, find_mismatches, parse_type

if TYPE_CHECKING:
    from millstream.pipeline.load.document import Path
    from millstream.pipeline.model import SourceEntry
    from millstream.testing.files.parse_context import ParseContext
    from millstream.testing.model import Fed, Row

_KEPT = {
    KeptColumn.KEY: "string",
    KeptColumn.TOPIC: "string",
    KeptColumn.PARTITION: "int",
    KeptColumn.OFFSET: "bigint",
    KeptColumn.TIMESTAMP: "timestamp",
}
RECORD = "record"


def parse_rows(ground: ParseContext, label: str, value: Any, path: Path) -> tuple[Row, ...]:
    """Parse a list of rows, each a mapping of column names to values."""
    parsed = []
    for number, item in enumerate(ground.items(label, value, path)):
        if isinstance(item, dict):
            parsed.append(item)
        else:
            ground.add_type_finding(f"a row of {label}", "columns with values", item, (*path, number))
    return tuple(parsed)


def parse_feed(
    ground: ParseContext, name: str, entry: SourceEntry, value: Any, path: Path
) -> tuple[Fed, ...]:
    """Parse the feed of one source: rows of its schema, or whole messages."""
    label = f"source '{name}'"
    types = column_types(entry)
    parsed: list[Fed] = []
    for number, item in enumerate(ground.items(f"the feed of {label}", value, path)):
        item_path = (*path, number)
        if not isinstance(item, dict):
            ground.add_type_finding(f"a row of {label}", "columns with values", item, item_path)
        elif set(item) == {RECORD} and (types is None or RECORD not in types):
            if entry.source.has_payload:
                parsed.append(parse_record(ground, item[RECORD], (*item_path, RECORD)))
            else:
                message = f"{label} delivers columns, not messages, and takes no 'record'"
                ground.add_key_finding("MS003", message, (*item_path, RECORD), fix="feed columns with values")
        else:
            check_row(ground, label, types, item, item_path)
            parsed.append(item)
    return tuple(parsed)


def column_types(entry: SourceEntry) -> dict[str, ParsedType] | None:
    """Return the type of each column of a source by lower-case name, or None if only Spark knows the columns."""
    names = known_columns(entry)
    if names is None:
        return None
    declared = dict(entry.columns or {})
    if entry.columns is None and not entry.source.has_payload and entry.source.columns:
        return {
            name.lower(): column_type
            for name, column_type in parse_type(f"struct<{entry.source.columns}>").fields.items()
        }
    kept_columns: dict[str, str] = {keep.value: _KEPT.get(keep, "") for keep in entry.keep}
    types_by_name = (
        {"value": "string", **kept_columns} if entry.columns is None else {**declared, **kept_columns}
    )
    return {name.lower(): parse_type(types_by_name.get(name, "")) for name in names}


def check_row(
    ground: ParseContext, label: str, types: dict[str, ParsedType] | None, row: Row, path: Path
) -> None:
    """Check a row against the names and types of its source's columns."""
    if types is None:
        return
    for column, value in row.items():
        column_path = (*path, column)
        if column.lower() not in types:
            nearest_column = find_nearest(column, types)
            fix = f"write '{nearest_column}'" if nearest_column else f"name one of {', '.join(types)}"
            ground.add_key_finding("MS012", f"{label} has no column '{column}'", column_path, fix=fix)
            continue
        for mismatch in find_mismatches(types[column.lower()], value, ()):
            inner = ".".join(map(str, (column, *mismatch.path)))
            if mismatch.message:
                bad_value = _value_at(value, mismatch.path)
                ground.add_type_finding(
                    f"'{inner}' of {label}",
                    mismatch.message,
                    bad_value,
                    (*column_path, *mismatch.path),
                    mismatch.fix,
                )
            else:
                ground.add_key_finding(
                    "MS012",
                    f"{label} has no field '{inner}'",
                    (*column_path, *mismatch.path),
                    fix=mismatch.fix,
                )


def _value_at(value: Any, path: Path) -> Any:
    """Return the nested value at a path."""
    for step in path:
        value = value[step]
    return value


def parse_record(ground: ParseContext, item: Any, path: Path) -> Record:
    """Parse a message. Fields with findings are left out."""
    settings = ground.drop_unknown_keys("a record", item, path, RecordForm)
    if not {"value", "value_base64"} & set(settings) and isinstance(item, dict):
        ground.add_key_finding(
            "MS004", "a record has no 'value'", path, fix="add 'value: …', or 'value: null' for none"
        )
    headers = settings.get("headers") or {}
    parts = headers if isinstance(headers, list) else [headers]
    pairs: list[tuple[str, bytes | None]] = []
    for number, part in enumerate(parts):
        header_path = (*path, "headers", number) if isinstance(headers, list) else (*path, "headers")
        for name, value in ground.mapping("a header", part, header_path).items():
            pairs.append((name, _encode_text(ground, f"header '{name}'", value, (*header_path, name))))
    return Record(
        value=_read_bytes(ground, settings, "value", path),
        key=_read_bytes(ground, settings, "key", path),
        topic=_read_text(ground, settings, "topic", path),
        partition=_read_number(ground, settings, "partition", path) or 0,
        offset=_read_number(ground, settings, "offset", path),
        timestamp=parse_time(ground, "'timestamp' of a record", settings["timestamp"], (*path, "timestamp"))
        if settings.get("timestamp") is not None
        else None,
        headers=tuple(pairs),
    )


def _read_bytes(ground: ParseContext, settings: dict[str, Any], name: str, path: Path) -> bytes | None:
    """Read the bytes of a field that is given as text or in base64."""
    base64_name = f"{name}_base64"
    if base64_name not in settings:
        return _encode_text(ground, f"'{name}' of a record", settings.get(name), (*path, name))
    if name in settings:
        ground.add_key_finding(
            "MS003",
            f"a record has both '{name}' and '{base64_name}'",
            (*path, base64_name),
            fix="keep only one of them",
        )
    text = settings[base64_name]
    decoded = decode_base64(text) if isinstance(text, str) else None
    if decoded is None and text is not None:
        ground.add_type_finding(f"'{base64_name}' of a record", "text in base64", text, (*path, base64_name))
    return decoded


def _encode_text(ground: ParseContext, label: str, value: Any, path: Path) -> bytes | None:
    if value is not None and not isinstance(value, str):
        fix = f'put it in quotes: "{value}"' if isinstance(value, int | float) else ""
        ground.add_type_finding(label, "text", value, path, fix)
        return None
    return None if value is None else value.encode("utf-8", "replace")


def _read_text(ground: ParseContext, settings: dict[str, Any], name: str, path: Path) -> str | None:
    value = settings.get(name)
    if value is None or isinstance(value, str):
        return value
    ground.add_type_finding(f"'{name}' of a record", "text", value, (*path, name))
    return None


def _read_number(ground: ParseContext, settings: dict[str, Any], name: str, path: Path) -> int | None:
    return (
        None
        if settings.get(name) is None
        else parse_count(ground, f"'{name}' of a record", settings[name], (*path, name))
    )


def parse_count(ground: ParseContext, label: str, value: Any, path: Path) -> int | None:
    """Return the value if it is a whole number from 0 that fits Spark's long; otherwise add a finding."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63:
        return value
    ground.add_type_finding(label, "a whole number of at least 0", value, path)
    return None


def parse_time(ground: ParseContext, label: str, value: Any, path: Path) -> Any:
    """Parse a timestamp with a time zone; otherwise add a finding and return None."""
    try:
        return parse_timestamp(value)
    except (ValueError, OverflowError):
        ground.add_type_finding(label, "a time like 2026-01-31 12:00:00", value, path)
        return None
