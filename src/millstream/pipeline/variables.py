"""Put the values of variables into a spec's data, and remember where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.diagnostics.catalogue import finding
from millstream.diagnostics.lines import Lines
from millstream.spec.interpolation import Unset, interpolate

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path as Folder

    from millstream.diagnostics.finding import Finding
    from millstream.pipeline.document import Document, Path


class Variables:
    """The replaced data of a document.

    `written` holds, for each value that came from a variable, the text as it stands in the file: messages
    show that and never the value. `unset` holds a finding for each variable without a value, by place.
    """

    def __init__(self, document: Document, env: Mapping[str, str], folder: Folder) -> None:
        self.document, self.env, self.folder = document, env, folder
        self.written: dict[Path, tuple[str, str]] = {}
        self.unset: list[tuple[Path, Finding]] = []
        self.data = self._replace((), document.data)

    def _replace(self, path: Path, value: Any) -> Any:
        """The value with its variables replaced; SQL is left as it is."""
        if isinstance(value, dict):
            return {key: self._replace((*path, key), item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._replace((*path, number), item) for number, item in enumerate(value)]
        if not isinstance(value, str) or "$" not in value or is_sql(path):
            return value
        text, wrong = interpolate(value, self.env, self.folder)
        self.unset.extend((path, self._finding(path, unset)) for unset in wrong)
        if text != value:
            self.written[path] = (value, text)
        return text

    def _finding(self, path: Path, unset: Unset) -> Finding:
        """The finding at the very characters of the variable."""
        scalar = self.document.scalars.get(path)
        if scalar is None:  # the value stands behind an alias; what is around it shows where
            span = next(
                (
                    self.document.values[path[:end]]
                    for end in range(len(path), -1, -1)
                    if path[:end] in self.document.values
                ),
                None,
            )
        else:
            places = scalar.places(self.document.text)
            span = Lines(self.document.text).span(
                self.document.file, places[unset.start], places[unset.stop - 1] + 1
            )
        return finding("MS006", unset.message, span, fix=unset.fix)


def is_sql(path: Path) -> bool:
    """Is the value at this place a view's SQL?"""
    return path[:1] == ("views",) and (len(path) == 2 or (len(path) == 3 and path[2] == "sql"))
