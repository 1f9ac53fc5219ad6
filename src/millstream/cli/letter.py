"""A dead letter in words: its place, a line, the whole of it, and as JSON."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from millstream.connectors.letters import Letter
    from millstream.runtime.aside import SetAside

# A terminal line shows so much of a value; the JSON has all of it.
SHOWN = 60
_ROW = 16


def record(letter: Letter) -> dict[str, object]:
    """A letter as programs read it; the shape is kept stable."""
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
        "headers": None if letter.headers is None else [_header(one) for one in letter.headers],
        "expectation": letter.expectation,
        "batch_id": letter.batch_id,
        "at": letter.at.isoformat(),
    }


def _header(one: Mapping[str, str | bytes | None]) -> dict[str, object]:
    """A header, with its bytes in base64."""
    value = one["value"]
    return {"key": one["key"], "value_base64": _base64(value if isinstance(value, bytes) else None)}


def _base64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def placed(letter: Letter) -> str:
    """Where the record stands: `clicks topic clicks/3@1042`."""
    if letter.topic is not None:
        return f"{letter.source} {letter.topic}/{letter.partition}@{letter.offset}"
    return f"{letter.source} {letter.file or '?'}"


def text(value: bytes | None) -> str:
    """The beginning of a value, with nothing a terminal would obey."""
    if value is None:
        return "null"
    shown = ascii(value[:SHOWN].decode("utf-8", "backslashreplace"))
    return shown + (" …" if len(value) > SHOWN else "")


def whole(letter: Letter) -> Iterator[str]:
    """All that is kept of a letter, line by line; bytes as text and in hexadecimal, nothing a terminal obeys."""
    for name, value in (
        ("query", letter.query),
        ("source", letter.source),
        ("place", placed(letter).partition(" ")[2]),
        ("time", letter.timestamp.isoformat() if letter.timestamp else None),
        ("reason", letter.reason),
        ("expectation", letter.expectation),
        ("batch", letter.batch_id),
        ("set aside", letter.at.isoformat()),
    ):
        if value is not None:
            yield f"{name:<12} {value}"
    for header in letter.headers or ():
        data = header["value"]
        yield f"header       {header['key']!a}: {_line(data if isinstance(data, bytes) else None)}"
    for name, held in (("key", letter.key), ("value", letter.value)):
        if held is None:
            yield f"{name:<12} null"
            continue
        yield f"{name:<12} {len(held):,} bytes: {_line(held)}"
        for start in range(0, len(held), _ROW):
            row = held[start : start + _ROW]
            shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
            yield f"  {start:08x}  {row.hex(' '):<{_ROW * 3}} {shown}"


def waits(batch: SetAside) -> dict[str, object]:
    """A batch that waits for its sink, as programs read it."""
    return {
        "query": batch.query,
        "sink": batch.sink,
        "batch": batch.batch,
        "reason": batch.reason,
        "at": batch.at.isoformat(),
    }


def _line(value: bytes | None) -> str:
    """Bytes as text, whole."""
    return "null" if value is None else ascii(value.decode("utf-8", "backslashreplace"))
