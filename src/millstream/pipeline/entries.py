"""What must hold between the settings of one source, beyond each setting by itself."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.pipeline.describe import nearest
from millstream.pipeline.model import Format, SourceEntry
from millstream.spec.expectation import Otherwise

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.pipeline.document import Path

_BRACKETED = re.compile(r"\([^()]*\)|<[^<>]*>|'(?:[^'\\]|\\.)*'")


@dataclass(frozen=True)
class Mismatch:
    """Two settings that do not go together: the code, the place inside the entry, and the words."""

    code: str
    path: Path
    message: str
    why: str = ""
    fix: str = ""


def columns(entry: SourceEntry) -> list[str] | None:
    """The columns a source is known to give, or None when only reading it would tell."""
    kept = [keep.value for keep in entry.keep]
    if entry.columns is not None:
        return [*entry.columns, *kept]
    if entry.source.payload:
        return ["value", *kept] if entry.format is Format.RAW else None
    return None if entry.source.columns is None else _names(entry.source.columns)


def mismatches(name: str, entry: SourceEntry) -> Iterator[Mismatch]:
    """What does not go together in the source called `name`."""
    who, kind = f"source '{name}'", entry.source.kind
    yield from _reading(who, kind, entry)
    yield from _avro(who, entry)
    avro = entry.format is Format.AVRO
    if entry.source.payload and not avro and entry.format is not Format.RAW and entry.columns is None:
        yield Mismatch(
            "MS014",
            (),
            f"{who} decodes {entry.format} and has no schema",
            f"{kind} gives bytes; a stream's columns must be known before its first row",
            "add 'schema: {column: type, …}', or 'format: raw' for the bytes as they come",
        )
    if not entry.source.payload:
        for field in ("format", "keep"):
            if field in entry.model_fields_set:
                message = f"'{field}' of {who} has no meaning: {kind} gives columns, not messages"
                yield Mismatch("MS003", (field,), message, fix=f"remove '{field}'")
    if entry.drop_duplicates_within_watermark and entry.watermark is None:
        yield Mismatch(
            "MS013",
            ("drop_duplicates_within_watermark",),
            f"{who} drops duplicates within the watermark and has none",
            "the watermark says how long a key is remembered",
            "add 'watermark: {event_time: …, delay_threshold: …}'",
        )
    for expected, one in entry.expect.items() if entry.static else ():
        if one.otherwise is Otherwise.DEAD_LETTER:
            yield Mismatch(
                "MS003",
                ("expect", expected, "otherwise"),
                f"{who} is static, and its rows cannot be set aside",
                "a static table is read again by every batch, which would set the same rows aside again",
                "write 'drop' or 'fail'",
            )
    known = columns(entry)
    if known is None:
        return
    if entry.watermark is not None:
        yield from _column(who, entry.watermark.event_time, known, ("watermark", "event_time"))
    for number, key in enumerate(entry.drop_duplicates_within_watermark):
        yield from _column(who, key, known, ("drop_duplicates_within_watermark", number))


def _avro(who: str, entry: SourceEntry) -> Iterator[Mismatch]:
    """Avro values need their schema, which says the columns, and no other values do."""
    if entry.format is Format.AVRO and entry.avro_value is None:
        yield Mismatch(
            "MS014",
            (),
            f"{who} decodes avro and has no schema of its values",
            "a value in Avro's binary form does not say what it is made of",
            "add 'avro_value: {schema: FILE.avsc}', with 'header: confluent' for values of a schema registry",
        )
    if entry.avro_value is None:
        return
    if entry.format is not Format.AVRO:
        message = f"'avro_value' of {who} has no meaning: its format is {entry.format}"
        yield Mismatch("MS003", ("avro_value",), message, fix="write 'format: avro', or remove 'avro_value'")
        return
    if entry.options:
        yield Mismatch(
            "MS003", ("options",), f"{who} has options, and avro knows none", fix="remove 'options'"
        )
    said = {name: _plain(kind) for name, kind in (entry.columns or {}).items()}
    if said != {name: _plain(kind) for name, kind in entry.avro_value.columns.items()}:
        yield Mismatch(
            "MS003",
            ("schema",),
            f"{who} has columns that are not those of its Avro schema",
            "the Avro schema says them: "
            + ", ".join(f"{name} {kind}" for name, kind in entry.avro_value.columns.items()),
            "remove 'schema'",
        )


def _plain(kind: str) -> str:
    """A type without case and blanks."""
    return "".join(kind.lower().split())


def _reading(who: str, kind: str, entry: SourceEntry) -> Iterator[Mismatch]:
    """Static or stream: does the kind allow what is asked?"""
    if entry.static and not entry.source.static:
        yield Mismatch(
            "MS015",
            ("static",),
            f"{who} is static, and {kind} can only be read as a stream",
            fix="remove 'static'",
        )
    if not entry.static and not entry.source.streams:
        yield Mismatch(
            "MS015",
            (),
            f"{who} is a stream, and {kind} can only be read as a table",
            fix="add 'static: true'",
        )


def _column(who: str, column: str, known: list[str], path: Path) -> Iterator[Mismatch]:
    """Is the column one of the source's? Spark compares names without case."""
    if column.lower() in (name.lower() for name in known):
        return
    near = nearest(column, known, alike=0.8)
    fix = f"write '{near}'" if near else f"name one of {', '.join(known)}"
    yield Mismatch("MS012", path, f"{who} has no column '{column}'", fix=fix)


def _names(ddl: str) -> list[str]:
    """The column names of a DDL text like `timestamp TIMESTAMP, value BIGINT`."""
    while (plain := _BRACKETED.sub("", ddl)) != ddl:
        ddl = plain
    return [part.split()[0].strip("`") for part in ddl.split(",") if part.split()]
