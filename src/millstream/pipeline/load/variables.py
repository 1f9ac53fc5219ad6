"""Replace variables in a spec's data with their values, and record where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.diagnostics.lines import TextLines
from millstream.diagnostics.spec_codes import build_finding
from millstream.spec.secrets.interpolation import UnsetVariable, interpolate

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path as Folder

    from millstream.diagnostics.finding import Finding
    from millstream.pipeline.load.document import Path, YamlDocument


class Variables:
    """The data of a document with its variables replaced.

    `replaced` contains, for each value that contains a variable, its text in the file and the value: messages
    show the text and never the value. `unset` contains a finding for each variable without a value, by path.
    """

    def __init__(self, document: YamlDocument, env: Mapping[str, str], folder: Folder) -> None:
        self.document, self.env, self.folder = document, env, folder
        self.replaced: dict[Path, tuple[str, str]] = {}
        self.unset: list[tuple[Path, Finding]] = []
        self.data = self._replace((), document.data)

    def _replace(self, path: Path, value: Any) -> Any:
        """Return the value with its variables replaced; SQL is not changed."""
        if isinstance(value, dict):
            return {key: self._replace((*path, key), item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._replace((*path, number), item) for number, item in enumerate(value)]
        if not isinstance(value, str) or "$" not in value or is_sql(path):
            return value
        text, unset_variables = interpolate(value, self.env, self.folder)
        self.unset.extend((path, self._finding(path, unset)) for unset in unset_variables)
        if text != value:
            self.replaced[path] = (value, text)
        return text

    def _finding(self, path: Path, unset: UnsetVariable) -> Finding:
        """Return the finding at exactly the characters of the variable."""
        scalar = self.document.scalars.get(path)
        if scalar is None:  # the value comes from an alias, so the enclosing value is shown
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
            span = TextLines(self.document.text).span(
                self.document.file, places[unset.start], places[unset.stop - 1] + 1
            )
        return build_finding("MS006", unset.message, span, fix=unset.fix)


def is_sql(path: Path) -> bool:
    """Return whether the value at this path is a view's SQL."""
    return path[:1] == ("views",) and (len(path) == 2 or (len(path) == 3 and path[2] == "sql"))
