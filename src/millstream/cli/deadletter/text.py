"""Format a dead letter: its place, a one-line preview, its full text, and JSON."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from millstream.diagnostics.snippet import escape_control

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from millstream.connectors.api.dead_letters import DeadLetter
    from millstream.engine.delivery.batch_spool import SpooledBatch

# Number of bytes of a value that a line in the terminal shows; the JSON has all of them.
SHOWN = 60
HEX_SHOWN = 20
_ROW = 16
DEAD_LETTER_COLUMNS = ("number", "rejected", "source", "place", "reason", "value")


def dead_letter_json(letter: DeadLetter) -> dict[str, object]:
    """Convert a dead letter to JSON, in a shape that stays stable."""
    return {
        "query": letter.query,
        "source": letter.source,
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "file": letter.file,
        "timestamp": None if letter.timestamp is None else letter.timestamp.isoformat(),
        "reason": letter.reason,
        "key_base64": _base64(letter.key),
        "value_base64": _base64(letter.value),
        "headers": None if letter.headers is None else [_header(header) for header in letter.headers],
        "expectation": letter.expectation,
        "batch_id": letter.batch_id,
        "at": letter.at.isoformat(),
    }


def _header(header: Mapping[str, str | bytes | None]) -> dict[str, object]:
    """Convert a header, with its bytes in base64."""
    value = header["value"]
    return {"key": header["key"], "value_base64": _base64(value if isinstance(value, bytes) else None)}


def _base64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def format_place(letter: DeadLetter) -> str:
    """Return the place of the record: `clicks/3@1042` for a topic, else its file."""
    if letter.topic is not None:
        return f"{letter.topic}/{letter.partition}@{letter.offset}"
    return letter.file or "?"


def format_preview(value: bytes | None) -> str:
    """Return the beginning of a value: as text if it is printable text, else its bytes in hexadecimal."""
    if value is None:
        return "null"
    end = " …" if len(value) > SHOWN else ""
    try:
        text = value[:SHOWN].decode("utf-8", "strict" if len(value) <= SHOWN else "ignore")
        value.decode("utf-8")
    except UnicodeDecodeError:
        return f"hex {value[:HEX_SHOWN].hex(' ')}{' …' if len(value) > HEX_SHOWN else ''}"
    return (text if text.isprintable() and text else ascii(text)) + end


def dead_letter_rows(newest: Sequence[DeadLetter], total: int) -> Iterator[list[str]]:
    """Yield one row per record, numbered if `total` is not 0. A record that two queries rejected appears once."""
    printed = set()
    for older, letter in enumerate(newest):
        place = (letter.source, letter.topic, letter.partition, letter.offset)
        if letter.offset is not None and place in printed:
            continue
        printed.add(place)
        number = str(total - older) if total else ""
        yield [
            number,
            f"{letter.at:%Y-%m-%d %H:%M:%S}",
            letter.source,
            format_place(letter),
            letter.reason,
            format_preview(letter.value),
        ]


def format_dead_letter(letter: DeadLetter) -> Iterator[str]:
    """Yield all fields of a dead letter as lines: bytes as text and in hexadecimal, control characters escaped."""
    for name, value in (
        ("query", letter.query),
        ("source", letter.source),
        ("place", format_place(letter)),
        ("time", letter.timestamp.isoformat() if letter.timestamp else None),
        ("reason", letter.reason),
        ("expectation", letter.expectation),
        ("batch", letter.batch_id),
        ("rejected", letter.at.isoformat()),
    ):
        if value is not None:
            yield f"{name:<12} {escape_control(str(value))}"
    for header in letter.headers or ():
        data = header["value"]
        yield f"header       {header['key']!a}: {_line(data if isinstance(data, bytes) else None)}"
    for name, content in (("key", letter.key), ("value", letter.value)):
        if content is None:
            yield f"{name:<12} null"
            continue
        yield f"{name:<12} {len(content):,} bytes: {_line(content)}"
        for start in range(0, len(content), _ROW):
            row = content[start : start + _ROW]
            characters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
            yield f"  {start:08x}  {row.hex(' '):<{_ROW * 3}} {characters}"


def spooled_batch_json(batch: SpooledBatch) -> dict[str, object]:
    """Convert a spooled batch to JSON."""
    return {
        "query": batch.query,
        "sink": batch.sink,
        "batch": batch.batch,
        "reason": batch.reason,
        "at": batch.at.isoformat(),
    }


def _line(value: bytes | None) -> str:
    """Return all bytes as text."""
    return "null" if value is None else ascii(value.decode("utf-8", "backslashreplace"))
