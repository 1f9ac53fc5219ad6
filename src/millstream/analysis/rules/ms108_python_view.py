"""The file or function of a Python view, or of a sink that calls Python, does not exist, or needs a missing name."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from millstream.analysis.python.parsing import parse_or_none, parse_python
from millstream.analysis.python.undefined_names import list_undefined_names
from millstream.analysis.rule_context import Code, Facts
from millstream.pipeline.functions import list_functions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Read the text of each file without running it."""
    folder = facts.pipeline.folder
    for name, view in facts.pipeline.views.items():
        key, hook = view.hook or ("", None)
        allows_classes = view.transform_with_state is not None
        if isinstance(hook, str) and (
            mistake := _find_problem(hook, folder, "transforms", classes=allows_classes)
        ):
            span = facts.places.value("views", name, key)
            yield CODE.error(
                f"view '{name}': {mistake.message}",
                span,
                why=mistake.why,
                fix=mistake.fix,
                query=facts.query_of(name),
            )
    for query, number, entry in facts.sinks():
        for field, reference in entry.sink.functions().items():
            # Spark calls the function of a view when it is built, and that of a sink in the first batch.
            if mistake := _find_problem(reference, folder, "deliveries", classes=True, names=True):
                span = facts.places.value("queries", query, "to", number, "sink", field)
                message = f"{entry.sink.kind} of query '{query}': {mistake.message}"
                yield CODE.error(message, span, why=mistake.why, fix=mistake.fix, query=query)


@dataclass(frozen=True)
class _Problem:
    message: str
    why: str = ""
    fix: str = ""


def _find_problem(
    reference: str, folder: Path, example: str, *, classes: bool = False, names: bool = False
) -> _Problem | None:
    """Return why the function (or the class, if classes are allowed) is missing, or `None` if it exists.

    With `names`, also return the first name that it needs and its file does not define.
    """
    module, _, function = reference.partition(":")
    if not module or not function:
        return _Problem(f"'{reference}' is not 'module:function'", fix=f"write it as '{example}:name'")
    relative_path = module.replace(".", "/") + ".py"
    file = folder / relative_path
    if not file.resolve().is_relative_to(folder.resolve()):
        return _Problem(
            f"{relative_path} is outside the project folder", "Millstream runs only the project's own code"
        )
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        return _Problem(
            f"{relative_path} cannot be read: {reason}", fix="create it in the folder of the spec"
        )
    known = [*list_functions(text), *(_list_classes(text) if classes else ())]
    if function in known:
        return _find_missing_name(relative_path, text, function) if names else None
    if problem := _find_hidden_function(relative_path, text, function):
        return problem
    matches = get_close_matches(function, known, n=1)
    why = _find_syntax_error(text)
    fix = f"write '{module}:{matches[0]}'" if matches else "" if why else f"define 'def {function}(…)' in it"
    message = why or f"has no function '{function}'"
    return _Problem(f"{relative_path} {message}", fix=fix)


def _find_missing_name(path: str, text: str, function: str) -> _Problem | None:
    """Return the first name that a function needs and its file does not define."""
    for undefined in list_undefined_names(text, function):
        return _Problem(
            f"{path} does not define '{undefined.name}', which '{function}' needs (line {undefined.line})",
            "the first batch raises a NameError, which ends the query",
            f"define or import '{undefined.name}' in {path}",
        )
    return None


def _find_hidden_function(path: str, text: str, function: str) -> _Problem | None:
    """Return why a function that is in the text cannot be called; `None` if the text does not have it."""
    tree = parse_or_none(text)
    for node in ast.walk(tree) if tree else ():
        match node:
            case ast.ImportFrom(module=str(module), names=names, level=0):
                name = next((alias.name for alias in names if (alias.asname or alias.name) == function), None)
                if name:
                    return _Problem(f"{path} only imports '{function}'", fix=f"write '{module}:{name}'")
            case ast.AsyncFunctionDef() if node.name == function:
                return _Problem(f"{path} defines '{function}' with 'async def'", fix="define it with 'def'")
            case ast.FunctionDef() if node.name == function and function.startswith("_"):
                public_name = function.lstrip("_")
                return _Problem(
                    f"{path} has '{function}' as a private function", fix=f"name it '{public_name}'"
                )
            case ast.FunctionDef() if node.name == function:
                return _Problem(
                    f"{path} defines '{function}' inside another statement",
                    fix="define it at the top level of the file",
                )
    return None


def _list_classes(text: str) -> list[str]:
    """Return the names of the top-level classes; none if the text is not Python."""
    tree = parse_or_none(text)
    return [node.name for node in tree.body if isinstance(node, ast.ClassDef)] if tree else []


def _find_syntax_error(text: str) -> str:
    """Return why a text is not valid Python, or an empty string if it is."""
    try:
        parse_python(text)
    except SyntaxError as error:
        return f"is not valid Python: {error.msg} (line {error.lineno})"
    except (ValueError, RecursionError, MemoryError):
        return "is not valid Python"
    return ""
