"""Read the first rows of JSON and CSV files without Spark, to infer a schema from them."""

from __future__ import annotations

import csv
import json
import re
from itertools import islice
from typing import TYPE_CHECKING, Any

from millstream.connectors.api.csv_text import find_separator, parse_text
from millstream.connectors.api.values.file_sample import FileSample

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_IDENTIFIER = re.compile(r"[A-Za-z_][\w .-]*")
# A line that is longer, in characters, is cut: it is a file of another format.
_LONGEST = 1_000_000


def sample_json(files: Sequence[Path], limit: int) -> FileSample:
    """Read objects, one per line."""
    rows: list[dict[str, Any]] = []
    malformed = 0
    for line in _lines(files, limit):
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        if isinstance(value, dict):
            rows.append(value)
        else:
            malformed += 1
    if malformed > len(rows):
        raise ValueError("most lines are no JSON objects; each line must be one")
    return FileSample(rows, malformed=malformed)


def sample_csv(files: Sequence[Path], limit: int) -> FileSample:
    """Read rows, and find the separator and whether the first line has the names of the columns."""
    lines = list(_lines(files, limit))
    separator = find_separator(lines)
    records = [row for row in csv.reader(lines, delimiter=separator) if row]
    if not records:
        return FileSample([])
    width = len(records[0])
    has_header = _is_header(records)
    names = (
        [name.strip() for name in records[0]]
        if has_header
        else [f"c{number}" for number in range(1, width + 1)]
    )
    rows = [
        {name: parse_text(text) for name, text in zip(names, record, strict=True)}
        for record in records
        if len(record) == width and not (has_header and record == records[0])
    ]
    settings: dict[str, Any] = {"header": True} if has_header else {}
    if separator != ",":
        settings["sep"] = separator
    return FileSample(rows, None, settings, sum(len(record) != width for record in records))


def _lines(files: Sequence[Path], limit: int) -> Iterator[str]:
    """Yield the first lines of the files, the same number of each, without empty ones."""
    each = max(1, limit // max(1, len(files)))
    for file in files:
        with file.open(encoding="utf-8-sig") as stream:
            try:
                lines = (stream.readline(_LONGEST) for _ in range(each * 2))
                yield from islice((line.rstrip("\r\n") for line in lines if line.strip()), each)
            except UnicodeDecodeError:
                raise ValueError(f"{file.name} is not UTF-8 text") from None


def _is_header(records: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row has names: distinct words, over values of another type or none like them."""
    first, others = records[0], [row for row in records[1:] if len(row) == len(records[0])]
    if not all(_IDENTIFIER.fullmatch(name.strip()) for name in first) or len({*first}) < len(first):
        return False
    if any(isinstance(parse_text(name), bool) for name in first):
        return False
    typed = any(not isinstance(parse_text(row[index]), str) for row in others for index in range(len(first)))
    return typed or not any(name in {row[index] for row in others} for index, name in enumerate(first))
