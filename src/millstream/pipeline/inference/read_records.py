"""Read records of a topic or of files, a bounded number of them, and find their format."""

from __future__ import annotations

import base64
import csv
import glob
import json
import os
import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.connectors.api.csv_text import count_consistent, find_separator, parse_text
from millstream.connectors.registry import sources
from millstream.diagnostics.failure import InvalidInput, MillstreamError, NotReady
from millstream.pipeline.inference.avro_records import decode_avro_values
from millstream.pipeline.inference.topic_login import open_source
from millstream.pipeline.model import Format

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from millstream.spec.avro.schema import Avro

MOST_RECORDS = 1000
MOST_FILES = 20
# The part of the records that must have the format. The others become dead letters.
_ENOUGH = 0.9
# The header of values that were written with a schema registry: this byte, then the schema's id in four.
_REGISTRY = b"\x00"
_ANY_DEPTH = "**"
_COMPRESSED = (".gz", ".bz2", ".zst", ".snappy")


@dataclass(frozen=True)
class Records:
    """Records in the order of their arrival, and the source that reads them."""

    subject: str
    """The topic or files, as in a sentence."""
    name: str
    """A name for the source."""
    kind: str
    settings: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]
    partitions: Sequence[int]
    format: Format | None = None
    """The format of messages; None for files."""
    options: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] | None = None
    """Columns with their types, if the files declare them."""
    malformed: int = 0
    nulls: int = 0
    lines: Sequence[str] = ()
    """The messages as text, one per line; Avro values as JSON objects."""
    avro: Mapping[str, Any] = field(default_factory=dict)
    """The settings `avro_value` of Avro messages."""


@dataclass(frozen=True)
class Topic:
    """A topic to read records of."""

    name: str
    servers: str
    security: Mapping[str, str] = field(default_factory=dict)
    """Settings of the login, in which `${VARIABLES}` are not replaced."""
    avro: Avro | None = None
    """The schema of Avro values."""
    schema_path: str = ""
    """The file of the schema, relative to the project."""


def read_topic(topic: Topic, environment: Mapping[str, str], folder: Path) -> Records:
    """Read the newest records of a topic, with variables of `environment` and files relative to `folder`.

    Raises `InvalidInput` for a login that cannot be one, `NotReady` if there is no broker, no such topic or no
    record, `MillstreamError` if the format is unknown.
    """
    kind, settings = next(
        (kind, settings)
        for kind in sources().values()
        if (settings := kind.topic_settings(topic.name, topic.servers, topic.security))
    )
    source = open_source(kind, settings, environment, folder)
    messages = source.recent(MOST_RECORDS) or []
    messages.sort(key=lambda message: (message.partition, message.offset))
    filled = [message for message in messages if message.value]
    if not filled:
        what = "only records without a value" if messages else "no records"
        raise NotReady(
            f"topic '{topic.name}' at {topic.servers} has {what}",
            "send some records to it, then run init again",
        )
    values = [message.value or b"" for message in filled]
    subject = f"topic '{topic.name}'"
    columns: Mapping[str, str] | None = None
    avro: Mapping[str, Any] = {}
    options: Mapping[str, str] = {}
    if topic.avro is not None:
        format_, columns = Format.AVRO, topic.avro.columns
        parsed, header = decode_avro_values(topic.avro, values, subject)
        avro = {"schema": topic.schema_path, **header}
        lines = [json.dumps(row, default=_to_json, ensure_ascii=False) for row in parsed if row is not None]
    else:
        format_, options, parse = _find_format(subject, values)
        parsed = [parse(value) for value in values]
        lines = [value.decode(errors="replace").replace("\r", " ").replace("\n", " ") for value in values]
    return Records(
        subject,
        to_name(topic.name),
        kind.kind,
        settings,
        [row for row in parsed if row is not None],
        [message.partition for message, row in zip(filled, parsed, strict=True) if row is not None],
        format_,
        options,
        columns,
        malformed=parsed.count(None),
        nulls=len(messages) - len(filled),
        lines=lines,
        avro=avro,
    )


def read_files(pattern: str, project: Path) -> Records:
    """Read the first records of the newest files of a pattern or folder.

    Raises `InvalidInput` if there are no files or files of several formats, or if Spark has no such pattern,
    `MillstreamError` if the files cannot be read.
    """
    files = _list_files(pattern)
    kinds = {suffix: kind for kind in sources().values() for suffix in kind.suffixes}
    counts = Counter(
        kinds[file.suffix].kind if file.suffix in kinds else file.suffix or "no suffix" for file in files
    )
    if len(counts) > 1:
        listed = ", ".join(f"{count} {name}" for name, count in counts.most_common())
        raise InvalidInput(
            f"'{pattern}' names files of several formats: {listed}", "choose one, as in 'data/*.json'"
        )
    if files[0].suffix not in kinds:
        known = ", ".join(sorted(kinds))
        why = "is compressed" if files[0].suffix in _COMPRESSED else "has a format that is not known"
        raise InvalidInput(f"{files[0].name} {why}", f"name files that end with {known}")
    kind = kinds[files[0].suffix]
    newest = files[-MOST_FILES:]
    try:
        sample = kind.sample_files(newest, MOST_RECORDS)
    except (ValueError, OSError) as error:
        raise MillstreamError(
            f"'{pattern}' cannot be read as {kind.kind}: {error}", "name other files"
        ) from None
    if not sample.rows:
        raise MillstreamError(f"the files of '{pattern}' have no records", "name files with records")
    is_one_file = Path(pattern).is_file()
    path, lookup = _choose_path(Path(pattern), files)
    name = to_name(files[0].stem if is_one_file else _fixed_folder(path).resolve().name)
    settings = {
        "path": _to_path(path, project),
        **lookup,
        **sample.settings,
        "max_files_per_trigger": 100,
    }
    subject = pattern if is_one_file else f"{pattern} ({len(files)} file{'s' * (len(files) != 1)})"
    return Records(
        subject,
        name,
        kind.kind,
        settings,
        sample.rows,
        [0] * len(sample.rows),
        columns=sample.columns,
        malformed=sample.malformed,
    )


def to_name(text: str) -> str:
    """Return a text as the name of a source."""
    from sqlglot.dialects.spark import Spark  # noqa: PLC0415 - takes longer to load than this module

    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_").lower()
    if not re.match(r"[a-z]", name):
        return f"records_{name}".rstrip("_")
    reserved = {keyword.partition(" ")[0] for keyword in Spark.Tokenizer.KEYWORDS}
    return f"{name}_records" if name.upper() in reserved else name


def _list_files(pattern: str) -> list[Path]:
    """Return the files of a pattern or folder, oldest first."""
    path = Path(pattern)
    paths = path.rglob("*") if path.is_dir() else map(Path, glob.glob(pattern, recursive=True))  # noqa: PTH207 - Path.glob takes no absolute pattern
    files = [file for file in paths if file.is_file() and not file.name.startswith((".", "_"))]
    if not files:
        raise InvalidInput(f"no file matches '{pattern}'", "put the pattern in quotes, as in 'data/*.json'")
    return sorted(files, key=lambda file: (file.stat().st_mtime_ns, file.name))


def _choose_path(pattern: Path, files: Sequence[Path]) -> tuple[Path, dict[str, Any]]:
    """Return the path with which a source reads these files, and later ones like them, and settings for it.

    By default, a source reads the files of a folder itself, and those in folders such as `day=2026-01-01`.
    """
    if pattern.is_dir():
        places = [file.relative_to(pattern).parent.parts for file in files]
        is_flat = not any(places) or _are_partitions(places)
        return pattern, {} if is_flat else {"recursive_file_lookup": True}
    if _ANY_DEPTH in pattern.parts:
        *folders, name = pattern.parts
        first = folders.index(_ANY_DEPTH) if _ANY_DEPTH in folders else len(folders)
        if set(folders[first:]) - {_ANY_DEPTH}:
            raise InvalidInput(
                f"Spark has no pattern such as '{pattern}', with a folder after '{_ANY_DEPTH}'",
                f"name the folder above, or a pattern such as 'data/{_ANY_DEPTH}/*.json'",
            )
        names = {} if name == _ANY_DEPTH else {"path_glob_filter": name}
        return Path(*folders[:first]), {"recursive_file_lookup": True, **names}
    if glob.has_magic(str(pattern.parent)):
        return pattern, {}
    return pattern.parent, _name_filter(files, pattern.parent, is_one_file=pattern.is_file())


def _are_partitions(places: Sequence[tuple[str, ...]]) -> bool:
    """Return whether all folders are named by the same columns, as in `day=2026-01-01`."""
    columns = {tuple(name.partition("=")[:2] for name in folders) for folders in places}
    return len(columns) == 1 and all(equals for _, equals in columns.pop())


def _fixed_folder(path: Path) -> Path:
    """Return the part of a path above the first wildcard."""
    return next((part for part in (path, *path.parents) if not glob.has_magic(str(part))), path)


def _name_filter(files: Sequence[Path], folder: Path, *, is_one_file: bool) -> dict[str, str]:
    """Return the setting that leaves out other files of the folder, if there are any."""
    others = {file for file in folder.iterdir() if file.is_file()} - set(files)
    visible = [file for file in others if not file.name.startswith((".", "_"))]
    if not visible:
        return {}
    return {"path_glob_filter": files[0].name if is_one_file else f"*{files[0].suffix}"}


def _to_path(path: Path, project: Path) -> str:
    """Return a path from the project's folder if it lies in it, else an absolute one."""
    absolute, base = Path(os.path.abspath(path)), project.resolve()  # noqa: PTH100 - a pattern cannot be resolved
    return str(absolute.relative_to(base)) if absolute.is_relative_to(base) else str(absolute)


def _find_format(
    subject: str, values: Sequence[bytes]
) -> tuple[Format, dict[str, str], Callable[[bytes], dict[str, Any] | None]]:
    """Return the format of most values, the options of its reader, and a function that decodes a value or not."""
    enough = len(values) * _ENOUGH
    objects = sum(_to_object(value) is not None for value in values)
    if objects >= enough:
        return Format.JSON, {}, _to_object
    registered = sum(value[:1] == _REGISTRY and len(value) > len(_REGISTRY) + 4 for value in values)
    if registered >= enough:
        raise MillstreamError(
            f"{subject} has values with the header of a schema registry (schema "
            f"{int.from_bytes(values[-1][1:5], 'big')}), and Millstream contacts no registry",
            "save the schema in a file, and name it with --avro-schema",
        )
    lines = [text for value in values if (text := _to_line(value)) is not None]
    separator = find_separator(lines)
    if len(lines) >= enough and count_consistent(lines, separator) >= min(len(lines), 100) * _ENOUGH:
        width = lines[0].count(separator) + 1
        return (
            Format.CSV,
            {} if separator == "," else {"sep": separator},
            lambda value: _to_row(value, separator, width),
        )
    texts = len(lines) - objects
    counts = {"JSON objects": objects, "other texts": texts, "binary": len(values) - len(lines)}
    listed = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    what = (
        "values of several formats" if sum(map(bool, counts.values())) > 1 else "values of an unknown format"
    )
    raise MillstreamError(
        f"{subject} has {what}: {listed}",
        "write the spec by hand, with format: raw, and decode the values in a view",
    )


def _to_json(value: Any) -> str:
    """Return a value of an Avro record as a test file has it: times in ISO format, bytes in base64."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if isinstance(value, (datetime, date, time)) else str(value)


def _to_object(value: bytes) -> dict[str, Any] | None:
    try:
        parsed = json.loads(value)
    except ValueError:
        return None
    return parsed if isinstance(parsed, dict) and parsed else None


def _to_line(value: bytes) -> str | None:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() or "\t" in text else None


def _to_row(value: bytes, separator: str, width: int) -> dict[str, Any] | None:
    line = _to_line(value)
    cells = next(csv.reader([line], delimiter=separator), []) if line is not None else []
    if len(cells) != width:
        return None
    return {f"c{number}": parse_text(cell) for number, cell in enumerate(cells, 1)}
