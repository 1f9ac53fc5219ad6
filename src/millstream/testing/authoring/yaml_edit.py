"""Change values in the text of a YAML file, and preserve every other byte."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import yaml

from millstream.diagnostics.lines import TextLines
from millstream.pipeline.load.yaml_scalars import dump_value, resolve_scalar

if TYPE_CHECKING:
    from millstream.pipeline.load.document import Path, YamlDocument

# Text that needs no quotes: words with spaces that YAML reads as a string.
_UNQUOTED = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*\Z")
# The anchor before a value.
_ANCHOR = re.compile(r"(?:&\S+\s+)?")
# Maximum line length for rows on the same line as their key.
_MAX_LINE = 100


@dataclass(frozen=True, order=True)
class TextChange:
    """Replace the characters from `start` up to `stop` with another text."""

    start: int
    stop: int
    text: str


class UnchangeableValue(Exception):
    """A value cannot be changed on its own; the message says why."""


def apply_changes(text: str, changes: Iterable[TextChange]) -> str:
    """Apply changes, which must not overlap, to a text."""
    for change in sorted(set(changes), reverse=True):
        text = f"{text[: change.start]}{change.text}{text[change.stop :]}"
    return text


class YamlEditor:
    """Creates changes of values in one file."""

    def __init__(self, document: YamlDocument) -> None:
        self.document, self.text = document, document.text
        self.lines = TextLines(document.text)
        self.line_end = "\r\n" if "\r\n" in self.text else "\n"

    def set_value(self, path: Path, value: Any) -> TextChange:
        """Return the change that sets a value at a path, on one line. Raises `UnchangeableValue` inside an alias."""
        start, stop = self.extent(path)
        before = " " if start == stop and self.text[start - 1 : start] == ":" else ""
        return TextChange(start, stop, f"{before}{format_flow(value)}")

    def extent(self, path: Path) -> tuple[int, int]:
        """Return the range of a value in the text, without comments. Raises `UnchangeableValue` inside an alias."""
        document = self.document
        if path in document.scalars:
            scalar = document.scalars[path]
            # The text of a block scalar contains the line end after it.
            text = self.text[scalar.start : scalar.stop]
            return scalar.start, scalar.start + len(text.rstrip())
        span = document.values.get(path)
        if span is None:
            raise UnchangeableValue("it is inside a YAML alias")
        start, stop = (
            self.lines.index(span.line, span.column),
            self.lines.index(span.end_line, span.end_column),
        )
        if self._first_character(start) not in "[{*":
            inner = [child for child in (*document.scalars, *document.values) if len(child) == len(path) + 1]
            stop = max((self.extent(child)[1] for child in inner if child[:-1] == path), default=stop)
        return start, stop

    def rows(
        self,
        path: Path,
        cells: Mapping[tuple[int, str], Any],
        removed: Sequence[int],
        added: Sequence[Mapping[str, Any]],
    ) -> list[TextChange]:
        """Return the changes of a list of rows: cells by row and column, removed rows, and rows added at the end.

        Raises `UnchangeableValue` if a part of the list cannot be changed on its own.
        """
        start, stop = self.extent(path)
        if self.text.startswith("*", start, stop):
            raise UnchangeableValue("it is a YAML alias")
        count = self._count_items(path)
        if count == 0 or len(removed) == count:
            return self._rewrite_list(path, added)
        changes = [
            self.set_value((*path, number, column), value) for (number, column), value in cells.items()
        ]
        if self._first_character(start) == "[":
            return [*changes, *self._change_flow_list(path, count, removed, added)]
        return [*changes, *self._change_block_list(path, count, removed, added)]

    def refuse_lost_anchors(self, changes: Iterable[TextChange]) -> None:
        """Raise `UnchangeableValue` if a change removes an anchor, to which an alias may refer."""
        for change in changes:
            if any(change.start <= anchor < change.stop for anchor in self._anchors):
                raise UnchangeableValue("it contains a YAML anchor")

    @cached_property
    def _anchors(self) -> frozenset[int]:
        """The positions of the values that have an anchor."""
        return frozenset(
            event.start_mark.index
            for event in yaml.parse(self.text, Loader=yaml.CSafeLoader)
            if isinstance(event, yaml.NodeEvent) and not isinstance(event, yaml.AliasEvent)
            if event.anchor and event.start_mark
        )

    def _first_character(self, start: int) -> str:
        """Return the first character of the value at a position, after its anchor."""
        match = _ANCHOR.match(self.text, start)
        position = match.end() if match else start
        return self.text[position : position + 1]

    def _count_items(self, path: Path) -> int:
        return sum(
            value_path[:-1] == path for value_path in self.document.values if len(value_path) == len(path) + 1
        )

    def _rewrite_list(self, path: Path, added: Sequence[Mapping[str, Any]]) -> list[TextChange]:
        """Rewrite the whole list: on the line of its key if that is short enough."""
        start, stop = self.extent(path)
        key = self.document.keys.get(path)
        is_block = self.text[start : start + 1] == "-" and stop > start
        list_text = format_flow(list(added))
        line = self.lines.line(key.line) if key else ""
        is_in_flow = line.lstrip(" -").startswith("{") or "{" in line[: key.column - 1] if key else True
        fits_one_line = key is None or key.column + len(str(path[-1])) + len(list_text) < _MAX_LINE
        if is_block and key is not None:
            # The list begins below its key. Text between the two, such as a comment, is preserved.
            colon = self.text.index(":", self.lines.index(key.end_line, key.end_column)) + 1
            dash_positions = [self._find_dash(start, is_start=True)] if added and not fits_one_line else []
            if dash_positions:
                indent = " " * (self.lines.at(start)[1] - 1)
                items = (f"- {format_flow(row)}" for row in added)
                return [TextChange(start, stop, f"{self.line_end}{indent}".join(items))]
            begin = self.text.rindex("\n", 0, start)
            begin -= self.text[begin - 1] == "\r"
            return [TextChange(colon, colon, f" {list_text}"), TextChange(begin, stop, "")]
        before = " " if start == stop and self.text[start - 1 : start] == ":" else ""
        if fits_one_line or is_in_flow or key is None or not added:
            return [TextChange(start, stop, f"{before}{list_text}")]
        indent = " " * (key.column + 1)
        block_text = "".join(f"{self.line_end}{indent}- {format_flow(row)}" for row in added)
        return [TextChange(start - (self.text[start - 1] == " "), stop, block_text)]

    def _change_flow_list(
        self, path: Path, count: int, removed: Sequence[int], added: Sequence[Mapping[str, Any]]
    ) -> list[TextChange]:
        """Change a flow list `[a, b]`. A removed row takes the comma after it; the last rows, the comma before."""
        remaining = [number for number in range(count) if number not in removed]
        ends = {number: self.extent((*path, number)) for number in range(count)}
        changes = []
        for number in removed:
            if number < remaining[-1]:
                changes.append(TextChange(ends[number][0], ends[number + 1][0], ""))
        last = ends[remaining[-1]][1]
        if remaining[-1] < count - 1 or added:
            changes.append(
                TextChange(last, ends[count - 1][1], "".join(f", {format_flow(row)}" for row in added))
            )
        return changes

    def _change_block_list(
        self, path: Path, count: int, removed: Sequence[int], added: Sequence[Mapping[str, Any]]
    ) -> list[TextChange]:
        """Change a block list with `- a` on separate lines, by whole lines."""
        changes = []
        for number in removed:
            start, stop = self.extent((*path, number))
            dash = self._find_dash(start)
            end = self.text.find("\n", stop)
            changes.append(
                TextChange(self.text.rfind("\n", 0, dash) + 1, end + 1 if end >= 0 else len(self.text), "")
            )
        if added:
            start, stop = self.extent((*path, count - 1))
            indent = " " * (self.lines.at(self._find_dash(start))[1] - 1)
            end = self.text.find("\n", stop)
            lines = [f"{indent}- {format_flow(row)}" for row in added]
            if end >= 0:
                rows = "".join(f"{line}{self.line_end}" for line in lines)
                changes.append(TextChange(end + 1, end + 1, rows))
            else:
                rows = "".join(f"{self.line_end}{line}" for line in lines)
                changes.append(TextChange(len(self.text), len(self.text), rows))
        return changes

    def _find_dash(self, start: int, *, is_start: bool = False) -> int:
        """Return the position of a list item's dash, which must be the only text before the item on its line."""
        dash = start if is_start else self.text.rfind("-", 0, start)
        before = self.text[self.text.rfind("\n", 0, dash) + 1 : dash]
        if dash < 0 or before.strip() or self.text[dash + 1 : start].strip():
            raise UnchangeableValue("a row shares a line with other text")
        return dash


def format_flow(value: Any) -> str:
    """Format a value on one line of YAML for a test file. Text is quoted if necessary, and `$` is doubled."""
    if isinstance(value, Mapping):
        return (
            "{"
            + ", ".join(f"{format_flow(str(key))}: {format_flow(item)}" for key, item in value.items())
            + "}"
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join(format_flow(item) for item in value) + "]"
    if isinstance(value, str):
        text = value.replace("$", "$$")
        # A YAML 1.1 parser, for example in an editor, reads `no` and `on` as booleans, so they are quoted too.
        is_unquoted = _UNQUOTED.match(text) and resolve_scalar(text) == text and yaml.safe_load(text) == text
        return text if is_unquoted else dump_value(text)
    if isinstance(value, bool) or value is None:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float) and not math.isfinite(value):
        return '"NaN"' if math.isnan(value) else f'"{"" if value > 0 else "-"}Infinity"'
    return repr(value) if isinstance(value, float) else str(value)
