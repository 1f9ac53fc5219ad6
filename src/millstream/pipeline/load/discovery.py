"""Find views that a spec need not declare: `views/NAME.sql` files and functions of `transforms.py`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.diagnostics.finding import Finding, Span
from millstream.diagnostics.spec_codes import build_finding
from millstream.pipeline.functions import list_functions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from millstream.pipeline.load.places import ValuePositions

FOLDER = "views"
# A view with one of these keys defines itself; if it has a file too, the model reports the error.
_DEFINING_KEYS = {"sql", "python", "transform_with_state", "apply_in_pandas_with_state"}
MODULE = "transforms"


@dataclass
class DiscoveredViews:
    """The views of a spec including the discovered ones, and the files that contain them, by displayed name."""

    views: dict[str, Any]
    files: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def discover_views(
    data: Mapping[str, Any], folder: Path, places: ValuePositions, display_path: Path
) -> DiscoveredViews:
    """Return all views of a spec. `display_path` is the folder as messages name it."""
    declared = data.get("views")
    discovered = DiscoveredViews(
        {name: _as_mapping(view) for name, view in declared.items()} if isinstance(declared, dict) else {}
    )
    for name, view in list(discovered.views.items()):
        if isinstance(view, dict) and isinstance(view.get("file"), str) and not _DEFINING_KEYS & set(view):
            _read_sql(discovered, name, folder / view["file"], str(display_path / view["file"]), places)
    for path in sorted((folder / FOLDER).glob("*.sql")):
        file_name = str(display_path / FOLDER / path.name)
        # Editors and macOS write hidden files next to a file, such as the lock `.#visits.sql` of Emacs.
        if file_name in discovered.texts or path.name.startswith("."):
            continue
        if path.stem not in discovered.views:
            discovered.views[path.stem] = {"file": f"{FOLDER}/{path.name}"}
            _read_sql(discovered, path.stem, path, file_name, places)
        else:
            discovered.findings.append(
                build_finding(
                    "MS009",
                    f"view '{path.stem}' is defined here and in {file_name}",
                    places.key("views", path.stem),
                    why="one of the two would be ignored",
                    fix=f"remove one of them, or name the file: {path.stem}: {{file: {FOLDER}/{path.name}}}",
                )
            )
    _add_functions(discovered, data, folder)
    return discovered


def _as_mapping(view: Any) -> Any:
    """Return a view as a mapping: a plain string is its SQL."""
    return {"sql": view} if isinstance(view, str) else dict(view) if isinstance(view, dict) else view


def _read_sql(
    discovered: DiscoveredViews, name: str, path: Path, display_path: str, places: ValuePositions
) -> None:
    """Read a view's SQL from its file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as decode_error:
        message = f"the file of view '{name}', {display_path}, is not UTF-8 text (byte {decode_error.start})"
        discovered.findings.append(
            build_finding("MS011", message, Span.point(display_path), fix="save it as UTF-8")
        )
    except (OSError, ValueError) as os_error:
        reason = getattr(os_error, "strerror", None) or "it is not a path"
        place = places.value("views", name, "file")
        discovered.findings.append(
            build_finding(
                "MS011", f"the file of view '{name}', {display_path}, cannot be read: {reason}", place
            )
        )
    else:
        discovered.texts[display_path] = text
    discovered.views[name]["sql"] = discovered.texts.get(display_path, "")
    discovered.files[name] = display_path


def _add_functions(discovered: DiscoveredViews, data: Mapping[str, Any], folder: Path) -> None:
    """Add a view for each function of transforms.py that is read by name and that nothing else defines."""
    try:
        functions_by_name = list_functions((folder / f"{MODULE}.py").read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError):
        return
    sources = data.get("sources")
    used_names = {*discovered.views, *(sources if isinstance(sources, dict) else ())}
    declared = [_function_name(view) for view in discovered.views.values()]
    parameters = [
        name
        for function in declared
        if function in functions_by_name
        for name in functions_by_name[function].parameters
    ]
    reads = {*_read_names(discovered.views, data.get("queries")), *parameters}
    queue = [name for name in reads if name in functions_by_name]
    while queue:
        name = queue.pop()
        if name in used_names:
            continue
        used_names.add(name)
        discovered.views[name] = {"python": f"{MODULE}:{name}"}
        queue.extend(other for other in functions_by_name[name].parameters if other in functions_by_name)


def _function_name(view: Any) -> str:
    """Return the name of the function of transforms.py that a declared view names; empty if it names none."""
    reference = view.get("python") if isinstance(view, dict) else None
    module, _, name = reference.partition(":") if isinstance(reference, str) else ("", "", "")
    return name if module == MODULE else ""


def _read_names(views: Mapping[str, Any], queries: Any) -> set[str]:
    """Return the names that queries and views read."""
    from millstream.pipeline.sql.references import parse_sql  # noqa: PLC0415 - only for a project with transforms.py

    names: set[str] = set()
    for name, query in queries.items() if isinstance(queries, dict) else ():
        reads = query.get("from") if isinstance(query, dict) else None
        names.add(reads if isinstance(reads, str) else name)
    for view in views.values():
        sql = view.get("sql") if isinstance(view, dict) else None
        if isinstance(sql, str):
            names.update(mark.text for mark in parse_sql(sql).tables)
        if isinstance(view, dict):
            names.update(
                entry for entry in (view.get("from"), view.get("initial_state")) if isinstance(entry, str)
            )
    return names
