"""Read the calls of a class's own methods as calls of functions."""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def name_methods(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    """Change `self.write(rows)`, and `Sink.write(rows)` of a static method, to calls of the name `Sink.write`.

    Returns the methods by these names, as functions without the parameter for their object.
    """
    functions: dict[str, ast.FunctionDef] = {}
    for owner in [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]:
        methods = {node.name: node for node in owner.body if isinstance(node, ast.FunctionDef)}
        without_object = {name for name, method in methods.items() if is_static(method)}
        for called, method in methods.items():
            name = f"{owner.name}.{called}"
            functions[name] = method if called in without_object else _without_first_parameter(method)
            if called not in without_object and method.args.args:
                _rename(method, method.args.args[0].arg, methods, owner.name)
        _rename(tree, owner.name, without_object, owner.name)
    return functions


def is_static(function: Function) -> bool:
    """Return whether a method has no parameter for its object or class."""
    decorators = getattr(function, "decorator_list", [])
    return any(isinstance(decorator, ast.Name) and decorator.id == "staticmethod" for decorator in decorators)


def _rename(within: ast.AST, root: str, methods: Collection[str], owner: str) -> None:
    """Give the calls of these methods on the name `root` the name of a function."""
    for node in ast.walk(within):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods:
            called = node.func.value
            if isinstance(called, ast.Name) and called.id == root:
                node.func = ast.copy_location(ast.Name(f"{owner}.{node.func.attr}", ast.Load()), node.func)


def _without_first_parameter(method: ast.FunctionDef) -> ast.FunctionDef:
    function = copy.copy(method)
    function.args = copy.copy(method.args)
    function.args.args = method.args.args[1:]
    return function
