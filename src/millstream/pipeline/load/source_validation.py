"""Check the settings of one source against each other."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.connectors.api.ddl import find_column
from millstream.pipeline.introspection import find_nearest
from millstream.pipeline.model import Format, OnMalformed, SourceEntry
from millstream.spec.expectation import Otherwise

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.pipeline.load.document import Path

# Options of Spark's readers, in lower case, by which a message is found to be malformed.
_FIXED_OPTIONS = ("mode", "columnnameofcorruptrecord")
_BRACKETED = re.compile(r"\([^()]*\)|<[^<>]*>|'(?:[^'\\]|\\.)*'")


@dataclass(frozen=True)
class Mismatch:
    """Two settings that contradict each other: the code, the path inside the entry, and the texts."""

    code: str
    path: Path
    message: str
    why: str = ""
    fix: str = ""


def known_columns(entry: SourceEntry) -> list[str] | None:
    """Return the known columns of a source, or None if they are known only when it is read."""
    metadata_columns = [keep.value for keep in entry.keep]
    if entry.columns is not None:
        return [*entry.columns, *metadata_columns]
    if entry.source.has_payload:
        return ["value", *metadata_columns] if entry.format is Format.RAW else None
    return None if entry.source.columns is None else _names(entry.source.columns)


def find_mismatches(name: str, entry: SourceEntry) -> Iterator[Mismatch]:
    """Yield contradictions between the settings of the source `name`."""
    source_label, kind = f"source '{name}'", entry.source.kind
    yield from _reading_mode(source_label, kind, entry)
    yield from _avro(source_label, entry)
    avro = entry.format is Format.AVRO
    if entry.source.has_payload and not avro and entry.format is not Format.RAW and entry.columns is None:
        yield Mismatch(
            "MS014",
            (),
            f"{source_label} decodes {entry.format} but has no schema",
            f"{kind} returns bytes; a stream's columns must be known before its first row",
            "add 'schema: {column: type, …}', or 'format: raw' to keep the undecoded bytes",
        )
    for option in entry.options:
        if option.lower() in _FIXED_OPTIONS:
            yield Mismatch(
                "MS003",
                ("options", option),
                f"'{option}' of {source_label} is an option that Millstream sets",
                "on_malformed says what happens to a malformed message",
                f"remove '{option}'",
            )
    if not entry.source.has_payload:
        for field in ("format", "keep"):
            if field in entry.model_fields_set:
                message = f"'{field}' of {source_label} has no effect: {kind} returns columns, not messages"
                yield Mismatch("MS003", (field,), message, fix=f"remove '{field}'")
    if entry.drop_duplicates_within_watermark and entry.watermark is None:
        yield Mismatch(
            "MS013",
            ("drop_duplicates_within_watermark",),
            f"{source_label} drops duplicates within the watermark but has no watermark",
            "the delay of the watermark determines how long a key is stored",
            "add 'watermark: {event_time: …, delay_threshold: …}'",
        )
    if entry.static and entry.on_malformed is OnMalformed.DEAD_LETTER:
        yield _letters_of_static(source_label, ("on_malformed",))
    for expected, expectation in entry.expect.items() if entry.static else ():
        if expectation.otherwise is Otherwise.DEAD_LETTER:
            yield _letters_of_static(source_label, ("expect", expected, "otherwise"))
    known = known_columns(entry)
    if known is None:
        return
    if entry.watermark is not None:
        yield from _column(source_label, entry.watermark.event_time, known, ("watermark", "event_time"))
    for number, key in enumerate(entry.drop_duplicates_within_watermark):
        yield from _column(source_label, key, known, ("drop_duplicates_within_watermark", number))


def _letters_of_static(source_label: str, path: tuple[str, ...]) -> Mismatch:
    return Mismatch(
        "MS003",
        path,
        f"{source_label} is static, so its rows cannot become dead letters",
        "every batch reads a static source again, and would store the same dead letters again",
        "write 'drop' or 'fail'",
    )


def _avro(source_label: str, entry: SourceEntry) -> Iterator[Mismatch]:
    """Yield contradictions of the Avro settings: only Avro values need `avro_value`, which defines the columns."""
    if entry.format is Format.AVRO and entry.avro_value is None:
        yield Mismatch(
            "MS014",
            (),
            f"{source_label} decodes avro but has no schema of its values",
            "a value in Avro's binary encoding does not contain its schema",
            "add 'avro_value: {schema: FILE.avsc}', with 'header: confluent' for values of a schema registry",
        )
    if entry.avro_value is None:
        return
    if entry.format is not Format.AVRO:
        message = f"'avro_value' of {source_label} has no effect: its format is {entry.format}"
        yield Mismatch("MS003", ("avro_value",), message, fix="write 'format: avro', or remove 'avro_value'")
        return
    if entry.options:
        yield Mismatch(
            "MS003",
            ("options",),
            f"{source_label} has options, but avro supports none",
            fix="remove 'options'",
        )
    declared = {name: _plain(kind) for name, kind in (entry.columns or {}).items()}
    if declared != {name: _plain(kind) for name, kind in entry.avro_value.columns.items()}:
        yield Mismatch(
            "MS003",
            ("schema",),
            f"{source_label} has columns that differ from its Avro schema",
            "the columns of the Avro schema are: "
            + ", ".join(f"{name} {kind}" for name, kind in entry.avro_value.columns.items()),
            "remove 'schema'",
        )


def _plain(kind: str) -> str:
    """Return a type in lower case without blanks."""
    return "".join(kind.lower().split())


def _reading_mode(source_label: str, kind: str, entry: SourceEntry) -> Iterator[Mismatch]:
    """Yield an error if the kind cannot be read as requested, static or as a stream."""
    if entry.static and not entry.source.can_read_once:
        yield Mismatch(
            "MS015",
            ("static",),
            f"{source_label} is static, but {kind} can only be read as a stream",
            fix="remove 'static'",
        )
    if not entry.static and not entry.source.can_stream:
        yield Mismatch(
            "MS015",
            (),
            f"{source_label} is a stream, but {kind} can only be read as a table",
            fix="add 'static: true'",
        )


def _column(source_label: str, column: str, known: list[str], path: Path) -> Iterator[Mismatch]:
    """Yield an error if the source has no such column."""
    if find_column(column, known) is not None:
        return
    near = find_nearest(column, known, alike=0.8)
    fix = f"write '{near}'" if near else f"name one of {', '.join(known)}"
    yield Mismatch("MS012", path, f"{source_label} has no column '{column}'", fix=fix)


def _names(ddl: str) -> list[str]:
    """Return the column names of a DDL text like `timestamp TIMESTAMP, value BIGINT`."""
    while (plain := _BRACKETED.sub("", ddl)) != ddl:
        ddl = plain
    return [part.split()[0].strip("`") for part in ddl.split(",") if part.split()]
