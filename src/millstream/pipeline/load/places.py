"""Look up the positions of a spec's values: in its file, in `views/*.sql`, or by default its first line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.diagnostics.finding import Span
from millstream.diagnostics.lines import TextLines
from millstream.pipeline.model import LettersEntry, SinkEntry, SourceEntry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.pipeline.kinds import KindEntry
    from millstream.pipeline.load.document import Path, YamlDocument
    from millstream.pipeline.load.yaml_scalars import Scalar

# Steps that exist only in the model: the fields that contain a kind's settings, with their entries.
_ENTRIES: dict[str, type[KindEntry]] = {
    entry.kind_field: entry for entry in (SourceEntry, SinkEntry, LettersEntry)
}


@dataclass(frozen=True)
class ValuePositions:
    """Positions by path, such as `("sources", "clicks", "watermark", "delay_threshold")`.

    A path may name a kind's settings by the kind (`kafka`) or by the model's field (`source`), and may
    contain or omit the number of a sink that is the only one.
    """

    file: str
    document: YamlDocument | None = None
    sql_files: Mapping[str, str] = field(default_factory=dict)
    """The file of each view that has its own file."""
    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def unread(self) -> set[str]:
        """The views whose file could not be read, so that nothing is known about them."""
        return {view for view, file in self.sql_files.items() if file not in self.texts}

    def value(self, *path: str | int) -> Span:
        """Return the span of a value, or of the nearest enclosing one if the value is not in the file."""
        place = self._existing_prefix(path)
        if place and place == self._steps(path) and self.document:
            return self.document.values[place]
        return self._around(place, path)

    def key(self, *path: str | int) -> Span:
        """Return the span of a key, or of the nearest enclosing value if the key is not in the file."""
        place = self._existing_prefix(path)
        if self.document and place and place == self._steps(path) and place in self.document.keys:
            return self.document.keys[place]
        return self._around(place, path)

    def has(self, *path: str | int) -> bool:
        """Return whether the file has a value at exactly this path."""
        return self._existing_prefix(path) == self._steps(path)

    def scalar(self, *path: str | int) -> Scalar | None:
        """Return the scalar as written in the file, before variables are replaced; None if there is no scalar."""
        return self.document.scalars.get(self._steps(path)) if self.document else None

    def sql(self, view: str, start: int, stop: int) -> Span:
        """Return the span of characters `start` to `stop` of a view's SQL, in the spec or in the view's file."""
        if view in self.sql_files:
            name = self.sql_files[view]
            return TextLines(self.texts.get(name, "")).span(name, start, stop)
        if self.document:
            for place in (("views", view), ("views", view, "sql")):
                scalar = self.document.scalars.get(place)
                if scalar is not None:
                    characters = scalar.places(self.document.text)
                    first = characters[min(max(start, 0), len(characters) - 1)]
                    # Not the start of the next character: a line may end between the two.
                    last = characters[min(max(stop - 1, start, 0), len(characters) - 1)]
                    return TextLines(self.document.text).span(self.file, first, last + 1)
        return self.key("views", view)

    def _steps(self, path: Path) -> Path:
        """Return the path in the terms of the file."""
        current = self.document.data if self.document else None
        steps: list[str | int] = []
        for step in path:
            key_in_file = step
            if isinstance(step, int) and isinstance(current, dict):
                continue
            if isinstance(current, dict) and step not in current and step in _ENTRIES:
                kinds = _ENTRIES[str(step)].kinds()
                key_in_file = next((key for key in current if key in kinds), step)
            steps.append(key_in_file)
            try:
                current = current[key_in_file]  # type: ignore[index]
            except (KeyError, IndexError, TypeError):
                current = None
        return tuple(steps)

    def _existing_prefix(self, path: Path) -> Path:
        """Return the longest prefix of the path that exists in the file."""
        steps = self._steps(path)
        while steps and not (self.document and steps in self.document.values):
            steps = steps[:-1]
        return steps

    def _around(self, place: Path, path: Path) -> Span:
        """Return the span shown for a missing value: the enclosing value, or only its key if that is not a scalar."""
        if len(path) > 1 and path[0] == "views" and path[1] in self.sql_files and len(place) < 2:
            return Span.point(self.sql_files[str(path[1])])
        if not self.document or not place:
            return Span.point(self.file)
        if place in self.document.scalars or place not in self.document.keys:
            return self.document.values[place]
        return self.document.keys[place]
