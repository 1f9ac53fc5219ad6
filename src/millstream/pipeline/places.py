"""Where the values of a spec stand: in its file, in `views/*.sql`, or nowhere but its first line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.diagnostics.finding import Span
from millstream.diagnostics.lines import Lines
from millstream.pipeline.model import LettersEntry, SinkEntry, SourceEntry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.pipeline.document import Document, Path
    from millstream.pipeline.kinds import KindEntry

# The steps that only the model has: where a kind's settings are, by the entry that names the kind.
_ENTRIES: dict[str, type[KindEntry]] = {
    entry.kind_field: entry for entry in (SourceEntry, SinkEntry, LettersEntry)
}


@dataclass(frozen=True)
class Places:
    """Places by path, like `("sources", "clicks", "watermark", "delay_threshold")`.

    A path may name a kind's settings by the kind (`kafka`) or by the model's field (`source`), and may
    give or leave out the number of a sink that is the only one.
    """

    file: str
    document: Document | None = None
    sql_files: Mapping[str, str] = field(default_factory=dict)
    """The file of each view that has one of its own."""
    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def unread(self) -> set[str]:
        """The views whose file could not be read, so that nothing is known of them."""
        return {view for view, file in self.sql_files.items() if file not in self.texts}

    def value(self, *path: str | int) -> Span:
        """Where the value stands; for one that is not written, the nearest thing around it."""
        place = self._written(path)
        if place and place == self._steps(path) and self.document:
            return self.document.values[place]
        return self._around(place, path)

    def key(self, *path: str | int) -> Span:
        """Where the key stands; for one that is not written, the nearest thing around it."""
        place = self._written(path)
        if self.document and place and place == self._steps(path) and place in self.document.keys:
            return self.document.keys[place]
        return self._around(place, path)

    def has(self, *path: str | int) -> bool:
        """Is there a value at this very place in the file?"""
        return self._written(path) == self._steps(path)

    def sql(self, view: str, start: int, stop: int) -> Span:
        """Where characters `start` up to `stop` of a view's SQL stand, in the spec or in the view's file."""
        if view in self.sql_files:
            name = self.sql_files[view]
            return Lines(self.texts.get(name, "")).span(name, start, stop)
        if self.document:
            for place in (("views", view), ("views", view, "sql")):
                scalar = self.document.scalars.get(place)
                if scalar is not None:
                    characters = scalar.places(self.document.text)
                    first = characters[min(max(start, 0), len(characters) - 1)]
                    # One past the last character is not where the next one begins: a line may end between.
                    last = characters[min(max(stop - 1, start, 0), len(characters) - 1)]
                    return Lines(self.document.text).span(self.file, first, last + 1)
        return self.key("views", view)

    def _steps(self, path: Path) -> Path:
        """The path in the words of the file."""
        here = self.document.data if self.document else None
        steps: list[str | int] = []
        for step in path:
            inside = step
            if isinstance(step, int) and isinstance(here, dict):
                continue
            if isinstance(here, dict) and step not in here and step in _ENTRIES:
                kinds = _ENTRIES[str(step)].kinds()
                inside = next((key for key in here if key in kinds), step)
            steps.append(inside)
            try:
                here = here[inside]  # type: ignore[index]
            except (KeyError, IndexError, TypeError):
                here = None
        return tuple(steps)

    def _written(self, path: Path) -> Path:
        """The longest beginning of the path that the file has."""
        steps = self._steps(path)
        while steps and not (self.document and steps in self.document.values):
            steps = steps[:-1]
        return steps

    def _around(self, place: Path, path: Path) -> Span:
        """What to show for something that is not written: the value around it, by its key when it is long."""
        if len(path) > 1 and path[0] == "views" and path[1] in self.sql_files and len(place) < 2:
            return Span.point(self.sql_files[str(path[1])])
        if not self.document or not place:
            return Span.point(self.file)
        if place in self.document.scalars or place not in self.document.keys:
            return self.document.values[place]
        return self.document.keys[place]
