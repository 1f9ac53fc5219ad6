"""Change values of a YAML file in its text, and leave every other byte as it is."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from millstream.diagnostics.lines import Lines
from millstream.pipeline.scalar import resolve

if TYPE_CHECKING:
    from millstream.pipeline.document import Document, Path

# Text that stands without quotes: a word, or words with blanks, that YAML takes for nothing else.
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*\Z")
# A row is put on the line of its key where the line stays this short.
_LONGEST = 100


@dataclass(frozen=True, order=True)
class Change:
    """Characters `start` up to `stop` of a text become another text."""

    start: int
    stop: int
    text: str


class Unchangeable(Exception):
    """A place of a file cannot be changed alone: the sentence says why."""


def changed(text: str, changes: Iterable[Change]) -> str:
    """The text with all changes, none of which overlaps another."""
    for change in sorted(set(changes), reverse=True):
        text = f"{text[: change.start]}{change.text}{text[change.stop :]}"
    return text


class Writing:
    """Makes changes of one file's values."""

    def __init__(self, document: Document) -> None:
        self.document, self.text = document, document.text
        self.lines = Lines(document.text)

    def put(self, path: Path, value: Any) -> Change:
        """Another value at a place, in the style of one line. Raises `Unchangeable` behind an alias."""
        start, stop = self.extent(path)
        before = " " if start == stop and self.text[start - 1 : start] == ":" else ""
        return Change(start, stop, f"{before}{flow(value)}")

    def extent(self, path: Path) -> tuple[int, int]:
        """The characters that write a value, without comments after it. Raises `Unchangeable` behind an alias."""
        document = self.document
        if path in document.scalars:
            scalar = document.scalars[path]
            return scalar.start, scalar.stop
        span = document.values.get(path)
        if span is None:
            raise Unchangeable("it stands behind an alias")
        start, stop = (
            self.lines.index(span.line, span.column),
            self.lines.index(span.end_line, span.end_column),
        )
        if self.text[start] not in "[{*&":
            inner = [place for place in (*document.scalars, *document.values) if len(place) == len(path) + 1]
            stop = max((self.extent(place)[1] for place in inner if place[:-1] == path), default=stop)
        return start, stop

    def rows(
        self,
        path: Path,
        cells: Mapping[tuple[int, str], Any],
        gone: Sequence[int],
        come: Sequence[Mapping[str, Any]],
    ) -> list[Change]:
        """Changes in a list of rows: cells by row and column, rows that go, rows that come at its end.

        Raises `Unchangeable` where a part of it cannot be changed alone.
        """
        many = self._many(path)
        if many == 0 or len(gone) == many:
            return self._afresh(path, come)
        found = [self.put((*path, number, column), value) for (number, column), value in cells.items()]
        if self.text[self.extent(path)[0]] == "[":
            return [*found, *self._in_flow(path, many, gone, come)]
        return [*found, *self._in_block(path, many, gone, come)]

    def _many(self, path: Path) -> int:
        return sum(place[:-1] == path for place in self.document.values if len(place) == len(path) + 1)

    def _afresh(self, path: Path, come: Sequence[Mapping[str, Any]]) -> list[Change]:
        """The whole list written anew: on the line of its key where that is short enough."""
        start, stop = self.extent(path)
        key = self.document.keys.get(path)
        block = self.text[start : start + 1] == "-" and stop > start
        whole = flow(list(come))
        line = self.lines.line(key.line) if key else ""
        inside = line.lstrip(" -").startswith("{") or "{" in line[: key.column - 1] if key else True
        short = key is None or key.column + len(str(path[-1])) + len(whole) < _LONGEST
        if block and key is not None:
            # The list begins below its key: what stands between the two, a comment say, stays.
            colon = self.text.index(":", self.lines.index(key.end_line, key.end_column)) + 1
            dashes = [self._dash(start, own=True)] if come and not short else []
            if dashes:
                indent = " " * (self.lines.at(start)[1] - 1)
                return [Change(start, stop, f"\n{indent}".join(f"- {flow(row)}" for row in come))]
            begin = self.text.rindex("\n", 0, start)
            return [Change(colon, colon, f" {whole}"), Change(begin, stop, "")]
        before = " " if start == stop and self.text[start - 1 : start] == ":" else ""
        if short or inside or key is None or not come:
            return [Change(start, stop, f"{before}{whole}")]
        indent = " " * (key.column + 1)
        made = "".join(f"\n{indent}- {flow(row)}" for row in come)
        return [Change(start - (self.text[start - 1] == " "), stop, made)]

    def _in_flow(
        self, path: Path, many: int, gone: Sequence[int], come: Sequence[Mapping[str, Any]]
    ) -> list[Change]:
        """`[a, b]`: a row that goes takes the comma behind it along, the last ones the comma before them."""
        stay = [number for number in range(many) if number not in gone]
        ends = {number: self.extent((*path, number)) for number in range(many)}
        found = []
        for number in gone:
            if number < stay[-1]:
                found.append(Change(ends[number][0], ends[number + 1][0], ""))
        last = ends[stay[-1]][1]
        if stay[-1] < many - 1 or come:
            found.append(Change(last, ends[many - 1][1], "".join(f", {flow(row)}" for row in come)))
        return found

    def _in_block(
        self, path: Path, many: int, gone: Sequence[int], come: Sequence[Mapping[str, Any]]
    ) -> list[Change]:
        """`- a` on lines of their own: whole lines go and come."""
        found = []
        for number in gone:
            start, stop = self.extent((*path, number))
            dash = self._dash(start)
            end = self.text.find("\n", stop)
            found.append(
                Change(self.text.rfind("\n", 0, dash) + 1, end + 1 if end >= 0 else len(self.text), "")
            )
        if come:
            start, stop = self.extent((*path, many - 1))
            indent = " " * (self.lines.at(self._dash(start))[1] - 1)
            end = self.text.find("\n", stop)
            lines = [f"{indent}- {flow(row)}" for row in come]
            if end >= 0:
                found.append(Change(end + 1, end + 1, "".join(f"{line}\n" for line in lines)))
            else:
                found.append(Change(len(self.text), len(self.text), "".join(f"\n{line}" for line in lines)))
        return found

    def _dash(self, start: int, *, own: bool = False) -> int:
        """Where the dash of a list's item stands, alone on its line before the item."""
        dash = start if own else self.text.rfind("-", 0, start)
        before = self.text[self.text.rfind("\n", 0, dash) + 1 : dash]
        if dash < 0 or before.strip() or self.text[dash + 1 : start].strip():
            raise Unchangeable("a row does not stand on lines of its own")
        return dash


def flow(value: Any) -> str:
    """A value on one line of YAML, as a test file has it: text in quotes where it needs them, `$` doubled."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{flow(str(key))}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    if isinstance(value, str):
        text = value.replace("$", "$$")
        # A reader of YAML 1.1, an editor say, takes `no` and `on` for truth values; they are quoted too.
        plain = _BARE.match(text) and resolve(text) == text and yaml.safe_load(text) == text
        return text if plain else _quoted(text)
    if isinstance(value, bool) or value is None:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float) and not math.isfinite(value):
        return '"NaN"' if math.isnan(value) else f'"{"" if value > 0 else "-"}Infinity"'
    return repr(value) if isinstance(value, float) else str(value)


def _quoted(text: str) -> str:
    """Text in double quotes on one line."""
    dumped = yaml.safe_dump(text, default_style='"', allow_unicode=True, width=math.inf)
    return str(dumped).rstrip("\n")
