"""Read the docstrings of a model's fields from its source, on demand.

Pydantic would read them when a model class is created, which takes a fifth of a command's start-up time.
"""

from __future__ import annotations

import ast
import inspect
import sys
from functools import cache
from typing import TYPE_CHECKING

from millstream.spec.base import Spec

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeVar

    _Model = TypeVar("_Model", bound=Spec)


def with_field_docs(model: type[_Model]) -> type[_Model]:
    """Return the model with the docstring below each field as the field's `description`.

    A field that has a description keeps it. A class without source, such as one typed at a prompt, gets none.
    """
    missing = {name: field for name, field in model.model_fields.items() if field.description is None}
    if missing:
        docstrings = {
            name: text for base in reversed(model.__mro__) for name, text in _docstrings(base).items()
        }
        for name, field in missing.items():
            field.description = docstrings.get(name)
    return model


@cache
def _docstrings(model: type) -> Mapping[str, str]:
    """Return the docstring below each field that the class itself declares."""
    if not issubclass(model, Spec) or model.__module__ not in sys.modules:
        return {}
    return _docstrings_by_class(model.__module__).get(model.__name__, {})


@cache
def _docstrings_by_class(module: str) -> Mapping[str, Mapping[str, str]]:
    """Return the docstrings of the fields of each class in a module."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError):
        return {}
    return {node.name: _field_docstrings(node) for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def _field_docstrings(node: ast.ClassDef) -> Mapping[str, str]:
    docstrings = {}
    for field, below in zip(node.body, node.body[1:], strict=False):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
            continue
        if (
            isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
            and isinstance(below.value.value, str)
        ):
            docstrings[field.target.id] = inspect.cleandoc(below.value.value)
    return docstrings
