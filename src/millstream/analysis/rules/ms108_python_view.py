"""A Python view, or a sink that calls Python, whose file or function is not there."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts
from millstream.pipeline.functions import functions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Reads the file's text; runs nothing of it."""
    folder = facts.pipeline.folder
    for name, view in facts.pipeline.views.items():
        key, hook = view.hook or ("", None)
        classes = view.transform_with_state is not None
        if isinstance(hook, str) and (wrong := _missing(hook, folder, "transforms", classes=classes)):
            span = facts.places.value("views", name, key)
            yield CODE.error(
                f"view '{name}': {wrong.said}", span, why=wrong.why, fix=wrong.fix, query=facts.query_of(name)
            )
    for query, number, entry in facts.sinks():
        for field, reference in entry.sink.functions().items():
            if wrong := _missing(reference, folder, "deliveries", classes=True):
                span = facts.places.value("queries", query, "to", number, "sink", field)
                said = f"{entry.sink.kind} of query '{query}': {wrong.said}"
                yield CODE.error(said, span, why=wrong.why, fix=wrong.fix, query=query)


@dataclass(frozen=True)
class _Missing:
    said: str
    why: str = ""
    fix: str = ""


def _missing(reference: str, folder: Path, example: str, *, classes: bool = False) -> _Missing | None:
    """Why no function, or class where one will do, is found; None where it is."""
    module, _, function = reference.partition(":")
    if not module or not function:
        return _Missing(f"'{reference}' is not 'module:function'", fix=f"write it as '{example}:name'")
    shown = module.replace(".", "/") + ".py"
    file = folder / shown
    if not file.resolve().is_relative_to(folder.resolve()):
        return _Missing(f"{shown} lies outside of the project's folder", "only the project's own code is run")
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as failed:
        reason = getattr(failed, "strerror", None) or "it is not UTF-8 text"
        return _Missing(f"{shown} cannot be read: {reason}", fix="create it beside the spec")
    known = [*functions(text), *(_classes(text) if classes else ())]
    if function in known:
        return None
    near = get_close_matches(function, known, n=1)
    why = _broken(text)
    fix = f"write '{module}:{near[0]}'" if near else "" if why else f"define 'def {function}(…)' in it"
    said = why or f"has no function '{function}'"
    return _Missing(f"{shown} {said}", fix=fix)


def _classes(text: str) -> list[str]:
    """The classes at the top of a Python text; none when it is not Python."""
    return (
        [] if _broken(text) else [one.name for one in ast.parse(text).body if isinstance(one, ast.ClassDef)]
    )


def _broken(text: str) -> str:
    """Why a text is no Python, or nothing when it is."""
    try:
        ast.parse(text)
    except SyntaxError as wrong:
        return f"is no Python: {wrong.msg} (line {wrong.lineno})"
    except (ValueError, RecursionError, MemoryError):
        return "is no Python"
    return ""
