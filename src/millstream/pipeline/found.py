"""Views a spec need not name: `views/NAME.sql` files, and functions of `transforms.py` that are read."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.diagnostics.catalogue import finding
from millstream.diagnostics.finding import Finding, Span
from millstream.pipeline.functions import functions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from millstream.pipeline.places import Places

FOLDER = "views"
# A view with one of these says by itself what it is; a file beside it is a mistake that the model tells.
_SAID = {"sql", "python", "transform_with_state", "apply_in_pandas_with_state"}
MODULE = "transforms"
# Only names that SQL reads rows from; a function that is called like a column is not meant.
_READS = re.compile(
    r"\b(?:from|join)\s+(?:stream\s*\(?\s*)?`?([A-Za-z_]\w*)|,\s*`?([A-Za-z_]\w*)", re.IGNORECASE
)


@dataclass
class Found:
    """The views of a spec with the found ones among them, and the files that hold them, by shown name."""

    views: dict[str, Any]
    files: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def find(data: Mapping[str, Any], folder: Path, places: Places, shown: Path) -> Found:
    """All views of a spec's data. `shown` is the folder as messages name it."""
    given = data.get("views")
    found = Found(
        {name: _as_mapping(view) for name, view in given.items()} if isinstance(given, dict) else {}
    )
    for name, view in list(found.views.items()):
        if isinstance(view, dict) and isinstance(view.get("file"), str) and not _SAID & set(view):
            _read(found, name, folder / view["file"], str(shown / view["file"]), places)
    for path in sorted((folder / FOLDER).glob("*.sql")):
        here = str(shown / FOLDER / path.name)
        if here in found.texts:
            continue
        if path.stem not in found.views:
            found.views[path.stem] = {"file": f"{FOLDER}/{path.name}"}
            _read(found, path.stem, path, here, places)
        else:
            found.findings.append(
                finding(
                    "MS009",
                    f"view '{path.stem}' is defined here and in {here}",
                    places.key("views", path.stem),
                    why="one of the two would be ignored",
                    fix=f"remove one of them, or name the file: {path.stem}: {{file: {FOLDER}/{path.name}}}",
                )
            )
    _add_functions(found, data, folder)
    return found


def _as_mapping(view: Any) -> Any:
    """A view as a mapping: a bare text is its SQL."""
    return {"sql": view} if isinstance(view, str) else dict(view) if isinstance(view, dict) else view


def _read(found: Found, name: str, path: Path, shown: str, places: Places) -> None:
    """Take a view's SQL from its file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as wrong:
        message = f"the file of view '{name}', {shown}, is not UTF-8 text (byte {wrong.start})"
        found.findings.append(finding("MS011", message, Span.point(shown), fix="save it as UTF-8"))
    except (OSError, ValueError) as failed:
        reason = getattr(failed, "strerror", None) or "it is no path"
        place = places.value("views", name, "file")
        found.findings.append(
            finding("MS011", f"the file of view '{name}', {shown}, cannot be read: {reason}", place)
        )
    else:
        found.texts[shown] = text
    found.views[name]["sql"] = found.texts.get(shown, "")
    found.files[name] = shown


def _add_functions(found: Found, data: Mapping[str, Any], folder: Path) -> None:
    """Make a view of each function of transforms.py that is read by name and that nothing else provides."""
    try:
        known = functions((folder / f"{MODULE}.py").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return
    sources = data.get("sources")
    taken = {*found.views, *(sources if isinstance(sources, dict) else ())}
    waiting = [name for name in _read_names(found.views, data.get("queries")) if name in known]
    while waiting:
        name = waiting.pop()
        if name in taken:
            continue
        taken.add(name)
        found.views[name] = {"python": f"{MODULE}:{name}"}
        waiting.extend(other for other in known[name].parameters if other in known)


def _read_names(views: Mapping[str, Any], queries: Any) -> set[str]:
    """Names that queries and the SQL of views read."""
    names: set[str] = set()
    for name, query in queries.items() if isinstance(queries, dict) else ():
        reads = query.get("from") if isinstance(query, dict) else None
        names.add(reads if isinstance(reads, str) else name)
    for view in views.values():
        sql = view.get("sql") if isinstance(view, dict) else None
        if isinstance(sql, str):
            names.update(first or second for first, second in _READS.findall(sql))
        if isinstance(view, dict):
            names.update(one for one in (view.get("from"), view.get("initial_state")) if isinstance(one, str))
    return names
