"""Encode fed rows and messages as JSON of a source's raw columns, for a memory stream."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from millstream.connectors.api.csv_text import UnwritableText, format_line
from millstream.diagnostics.failure import InvalidInput
from millstream.pipeline.model import Format, KeptColumn
from millstream.spec.avro.encoding import encode_row
from millstream.testing.harness.fed_values import to_fed_row
from millstream.testing.model import Record
from millstream.testing.values.timestamps import parse_timestamp

if TYPE_CHECKING:
    from millstream.pipeline.model import SourceEntry
    from millstream.testing.model import Fed, Row

# Kafka's timestamp type CreateTime, as Spark encodes it.
_CREATE_TIME = 0
_AS_RECORD = "feed the message that a producer sends, as a 'record'"


@dataclass
class Feeder:
    """Encodes rows of one source as its reader would deliver them, and counts offsets as a broker does."""

    name: str
    _next_offsets: dict[tuple[str, int], int] = field(default_factory=dict)
    _portions: int = 0

    def raw(self, entry: SourceEntry, record: Sequence[Fed], now: datetime, zone: str) -> list[str]:
        """Return the raw columns as one JSON text per row. `now` is the timestamp of messages without one.

        `zone` is the time zone of the session that reads them.

        Raises `InvalidInput` for a column that the source does not have, and for a value that cannot be encoded.
        """
        self._portions += 1
        try:
            exact = [item if isinstance(item, Record) else to_fed_row(entry, item, zone) for item in record]
        except ValueError as error:
            raise InvalidInput(f"source '{self.name}' cannot be fed columns: {error}", _AS_RECORD) from error
        if entry.source.has_payload:
            return [self._encode_message(entry, self._as_record(entry, item), now) for item in exact]
        return [self._encode_columns(entry, item) for item in exact]

    def _encode_columns(self, entry: SourceEntry, row: Fed) -> str:
        if isinstance(row, Record):
            raise InvalidInput(
                f"source '{self.name}' delivers columns, not messages, and takes no record",
                "feed columns with values",
            )
        self._check_columns(row, list(entry.columns or {}) or None)
        place_columns = dict.fromkeys(entry.source.place, f"fed/{self.name}-{self._portions}")
        return _to_json({**place_columns, **row})

    def _encode_message(self, entry: SourceEntry, record: Record, now: datetime) -> str:
        topics = [resource.name for resource in entry.source.needs() if resource.what == "topic"]
        topic = record.topic or (topics[0] if topics else self.name)
        partition_of_topic = (topic, record.partition)
        offset = self._next_offsets.get(partition_of_topic, 0) if record.offset is None else record.offset
        self._next_offsets[partition_of_topic] = offset + 1
        return _to_json(
            {
                "key": record.key,
                "value": record.value,
                "topic": topic,
                "partition": record.partition,
                "offset": offset,
                "timestamp": record.timestamp or now,
                "timestampType": _CREATE_TIME,
                "headers": [{"key": key, "value": value} for key, value in record.headers] or None,
            }
        )

    def _as_record(self, entry: SourceEntry, record: Fed) -> Record:
        """Convert a row to the message that a producer would send, in the source's format."""
        if isinstance(record, Record):
            return record
        columns = ["value"] if entry.format is Format.RAW else list(entry.columns or {})
        metadata_names = {keep.value for keep in entry.keep if keep.value not in columns}
        self._check_columns(record, [*columns, *metadata_names])
        body = {name: value for name, value in record.items() if name not in metadata_names}
        metadata = {name: value for name, value in record.items() if name in metadata_names}
        timestamp = metadata.get(KeptColumn.TIMESTAMP)
        return Record(
            value=_encode_value(entry, columns, body),
            key=_to_bytes(metadata.get(KeptColumn.KEY)),
            topic=metadata.get(KeptColumn.TOPIC),
            partition=int(metadata.get(KeptColumn.PARTITION) or 0),
            offset=metadata.get(KeptColumn.OFFSET),
            timestamp=None if timestamp is None else parse_timestamp(timestamp),
            headers=_to_headers(metadata.get(KeptColumn.HEADERS)),
        )

    def _check_columns(self, row: Row, columns: list[str] | None) -> None:
        for name in row:
            if columns is not None and name not in columns:
                raise InvalidInput(
                    f"source '{self.name}' has no column '{name}'", f"its columns are {', '.join(columns)}"
                )


def _encode_value(entry: SourceEntry, columns: Sequence[str], row: Row) -> bytes | None:
    if entry.format is Format.RAW:
        return _to_bytes(row.get("value"))
    if entry.format is Format.JSON:
        return _to_json(row).encode()
    if entry.avro_value is not None:
        try:
            return encode_row(entry.avro_value, row)
        except ValueError as error:
            raise InvalidInput(
                f"{row} cannot be encoded as Avro: {error}", "feed values that match the Avro schema"
            ) from error
    values = [row.get(name) for name in columns]
    try:
        line = format_line(
            (value if value is None or _is_number(value) else _to_text(value) for value in values),
            entry.options,
        )
    except UnwritableText as error:
        raise InvalidInput(f"{row} cannot be encoded as CSV: {error}", _AS_RECORD) from error
    return line.encode()


def _to_json(row: Mapping[str, Any]) -> str:
    return json.dumps(row, default=_json_value, ensure_ascii=False)


def _json_value(value: Any) -> Any:
    """Convert a value that JSON lacks to the notation of Spark's JSON reader."""
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal():
            return str(value)
        case Mapping():
            return dict(value)
        case set() | frozenset() | tuple():
            return list(value)
    raise InvalidInput(
        f"a {type(value).__name__} cannot be fed: {value!r}", "feed text, numbers, lists, mappings"
    )


def _to_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return (
        value if isinstance(value, str) else str(_json_value(value)) if not _is_number(value) else str(value)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _to_bytes(value: Any) -> bytes | None:
    """Encode text as UTF-8. Bytes stay unchanged."""
    if value is None or isinstance(value, bytes):
        return value
    return _to_text(value).encode()


def _to_headers(value: Any) -> tuple[tuple[str, bytes | None], ...]:
    """Convert headers from a mapping, or from a list of entries with `key` and `value`."""
    if not value:
        return ()
    pairs = (
        value.items() if isinstance(value, Mapping) else ((entry["key"], entry["value"]) for entry in value)
    )
    return tuple((str(key), _to_bytes(content)) for key, content in pairs)
