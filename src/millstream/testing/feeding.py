"""What is fed, as JSON of a source's raw columns: the form in which a memory stream takes it."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from millstream.diagnostics.failure import WrongUse
from millstream.pipeline.model import Format, Keep
from millstream.spec.avro_bytes import encoded
from millstream.testing.case import Record

if TYPE_CHECKING:
    from millstream.pipeline.model import SourceEntry
    from millstream.testing.case import Fed, Row

# As Spark writes a record's timestamp type: made by the producer.
_CREATE_TIME = 0


@dataclass
class Feeder:
    """Makes raw rows of one source, as its reader would give them; counts offsets as a broker does."""

    name: str
    _next: dict[tuple[str, int], int] = field(default_factory=dict)
    _portions: int = 0

    def raw(self, entry: SourceEntry, fed: Sequence[Fed], now: datetime) -> list[str]:
        """JSON of the raw columns, a text a row; `now` is the timestamp of messages that have none.

        Raises `WrongUse` for a column that the source does not have.
        """
        self._portions += 1
        if entry.source.payload:
            return [self._message(entry, self._as_record(entry, one), now) for one in fed]
        return [self._columns(entry, one) for one in fed]

    def _columns(self, entry: SourceEntry, row: Fed) -> str:
        if isinstance(row, Record):
            raise WrongUse(
                f"source '{self.name}' gives columns, not messages, and takes no record",
                "feed columns with values",
            )
        self._known(row, list(entry.columns or {}) or None)
        beside = dict.fromkeys(entry.source.place, f"fed/{self.name}-{self._portions}")
        return _json({**beside, **row})

    def _message(self, entry: SourceEntry, record: Record, now: datetime) -> str:
        topics = [need.name for need in entry.source.needs() if need.what == "topic"]
        topic = record.topic or (topics[0] if topics else self.name)
        place = (topic, record.partition)
        offset = self._next.get(place, 0) if record.offset is None else record.offset
        self._next[place] = offset + 1
        return _json(
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

    def _as_record(self, entry: SourceEntry, fed: Fed) -> Record:
        """A row as the message that a producer would send, in the source's own format."""
        if isinstance(fed, Record):
            return fed
        columns = ["value"] if entry.format is Format.RAW else list(entry.columns or {})
        kept = {keep.value for keep in entry.keep if keep.value not in columns}
        self._known(fed, [*columns, *kept])
        body = {name: value for name, value in fed.items() if name not in kept}
        about = {name: value for name, value in fed.items() if name in kept}
        return Record(
            value=_encoded(entry, columns, body),
            key=_bytes(about.get(Keep.KEY)),
            topic=about.get(Keep.TOPIC),
            partition=int(about.get(Keep.PARTITION) or 0),
            offset=about.get(Keep.OFFSET),
            timestamp=_moment(about.get(Keep.TIMESTAMP)),
            headers=_headers(about.get(Keep.HEADERS)),
        )

    def _known(self, row: Row, columns: list[str] | None) -> None:
        for name in row:
            if columns is not None and name not in columns:
                raise WrongUse(
                    f"source '{self.name}' has no column '{name}'", f"its columns are {', '.join(columns)}"
                )


def _encoded(entry: SourceEntry, columns: Sequence[str], row: Row) -> bytes | None:
    if entry.format is Format.RAW:
        return _bytes(row.get("value"))
    if entry.format is Format.JSON:
        return _json(row).encode()
    if entry.avro_value is not None:
        try:
            return encoded(entry.avro_value, row)
        except ValueError as wrong:
            raise WrongUse(
                f"no Avro value can be made of {row}: {wrong}", "feed what the schema takes"
            ) from wrong
    line = io.StringIO()
    options = {key.lower(): value for key, value in entry.options.items()}
    sep = options.get("sep") or options.get("delimiter") or ","
    null = options.get("nullvalue", "")
    writer = csv.writer(line, delimiter=sep, quotechar=options.get("quote", '"'), lineterminator="")
    texts = [row.get(name) for name in columns]
    writer.writerow(null if value is None else _text(value) for value in texts)
    return line.getvalue().encode()


def _json(row: Mapping[str, Any]) -> str:
    return json.dumps(row, default=_plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """What JSON has no word for, as Spark's JSON reader takes it."""
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
    raise WrongUse(
        f"a {type(value).__name__} cannot be fed: {value!r}", "feed text, numbers, lists, mappings"
    )


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else str(_plain(value)) if not _number(value) else str(value)


def _number(value: Any) -> bool:
    return isinstance(value, int | float)


def _bytes(value: Any) -> bytes | None:
    """A text's UTF-8; bytes as they are."""
    if value is None or isinstance(value, bytes):
        return value
    return _text(value).encode()


def _moment(value: Any) -> datetime | None:
    """A time; UTC where no zone is told."""
    if value is None:
        return None
    told = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return told if told.tzinfo else told.replace(tzinfo=UTC)


def _headers(value: Any) -> tuple[tuple[str, bytes | None], ...]:
    """Headers from a mapping, or from a list of entries with `key` and `value`."""
    if not value:
        return ()
    pairs = value.items() if isinstance(value, Mapping) else ((one["key"], one["value"]) for one in value)
    return tuple((str(key), _bytes(told)) for key, told in pairs)
