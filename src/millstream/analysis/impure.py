"""Functions that Spark calls for rows, and what in their source gives another result when a batch runs again."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_MAKERS = frozenset({"udf", "pandas_udf", "arrow_udf", "udtf", "arrow_udtf"})
_TAKERS = frozenset(
    {"applyInPandas", "applyInArrow", "mapInPandas", "mapInArrow", "register"}
    | {"applyInPandasWithState", "transformWithState", "transformWithStateInPandas"}
)
_CLOCK = "reads the clock"
_CHANCE = "draws a random value"
_NETWORK = "asks another system"
# By the full name of what is called; a name that ends with a dot stands for all of a module.
_CALLS = {
    "time.time": _CLOCK,
    "time.time_ns": _CLOCK,
    "time.monotonic": _CLOCK,
    "time.perf_counter": _CLOCK,
    "time.localtime": _CLOCK,
    "time.gmtime": _CLOCK,
    "datetime.datetime.now": _CLOCK,
    "datetime.datetime.utcnow": _CLOCK,
    "datetime.datetime.today": _CLOCK,
    "datetime.date.today": _CLOCK,
    "pandas.Timestamp.now": _CLOCK,
    "pandas.Timestamp.utcnow": _CLOCK,
    "pandas.Timestamp.today": _CLOCK,
    "uuid.uuid1": _CHANCE,
    "uuid.uuid4": _CHANCE,
    "os.urandom": _CHANCE,
    "os.getpid": "reads the number of its process",
    "random.": _CHANCE,
    "secrets.": _CHANCE,
    "numpy.random.": _CHANCE,
    "requests.": _NETWORK,
    "httpx.": _NETWORK,
    "urllib.request.": _NETWORK,
    "urllib3.": _NETWORK,
    "http.client.": _NETWORK,
    "socket.": _NETWORK,
    "boto3.": _NETWORK,
    "psycopg.": _NETWORK,
    "psycopg2.": _NETWORK,
    "redis.": _NETWORK,
    "aiohttp.": _NETWORK,
}
# With an argument these are generators of a known seed.
_SEEDED = frozenset(
    {"random.Random", "numpy.random.default_rng", "numpy.random.RandomState", "numpy.random.Generator"}
)
_KEEPS = "keeps something between calls"
_ADDS = frozenset({"append", "add", "extend", "insert", "appendleft", "update"})


@dataclass(frozen=True)
class Impure:
    """A place in a function's source: `what` it does there, by `call` (the code, shortened)."""

    function: str
    what: str
    call: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass
class _Module:
    names: dict[str, str] = field(default_factory=dict)
    """What each imported name stands for: `dt` for `datetime.datetime`."""
    functions: dict[str, ast.AST] = field(default_factory=dict)
    """Functions and classes by name."""
    variables: set[str] = field(default_factory=set)
    """What the module itself assigns."""


def impure(text: str, called: Collection[str] = ()) -> list[Impure]:
    """The places in a Python text where a function that Spark calls for rows is not made of the rows alone.

    A function is one that `udf` and its kin wrap or that is handed to `mapInPandas` and its kin, with all of the
    same text that it calls; `called` are more of them, by name. One that is declared
    `asNondeterministic()` is left out: Spark knows of it. Gives nothing
    for a text that is no Python. Functions of other modules, and what an object does, are not looked into.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    module = _module(tree)
    found: dict[tuple[int, int], Impure] = {}
    named = [(name, module.functions[name]) for name in called if name in module.functions]
    for name, body in (*_called_by_spark(tree, module), *named):
        for one in _inside(body, name, module, set()):
            found.setdefault((one.line, one.column), one)
    return sorted(found.values(), key=lambda one: (one.line, one.column))


def _module(tree: ast.Module) -> _Module:
    module = _Module()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                module.names[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module:
            module.names.update(
                {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            )
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            module.functions.setdefault(node.name, node)
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        module.variables |= {target.id for target in targets if isinstance(target, ast.Name)}
    return module


def _called_by_spark(tree: ast.Module, module: _Module) -> Iterator[tuple[str, ast.AST]]:
    """Each function that Spark calls with rows, by name."""
    declared = {
        inside.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "asNondeterministic"
        for inside in ast.walk(node.value)
        if isinstance(inside, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any(_last(one) in _MAKERS for one in node.decorator_list):
            if node.name not in declared:
                yield node.name, node
        elif isinstance(node, ast.Call) and _last(node) in _MAKERS | _TAKERS:
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            for one in given:
                one = one.func if isinstance(one, ast.Call) else one
                if isinstance(one, ast.Lambda):
                    yield "a lambda", one
                elif isinstance(one, ast.Name) and one.id in module.functions and one.id not in declared:
                    yield one.id, module.functions[one.id]


def _last(node: ast.AST) -> str:
    """The last word of what is called: `udf` of `@F.udf("string")`."""
    while isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _inside(body: ast.AST, name: str, module: _Module, seen: set[str]) -> Iterator[Impure]:
    own = {
        node.id for node in ast.walk(body) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    own |= {node.arg for node in ast.walk(body) if isinstance(node, ast.arg)}
    told = {one for node in ast.walk(body) if isinstance(node, ast.Global) for one in node.names}
    shared = (module.variables - own) | (told & module.variables)
    for node in ast.walk(body):
        what = _what(node, module, shared)
        if what and isinstance(node, ast.expr | ast.stmt):
            call = " ".join(ast.unparse(node).split())
            yield Impure(
                name,
                what,
                call if len(call) <= 60 else f"{call[:59]}…",
                node.lineno,
                node.col_offset + 1,
                node.end_lineno or node.lineno,
                (node.end_col_offset or node.col_offset) + 1,
            )
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in module.functions
        ):
            called = node.func.id
            if called not in seen and called not in own:
                seen.add(called)
                yield from _inside(module.functions[called], name, module, seen)


def _what(node: ast.AST, module: _Module, shared: set[str]) -> str:
    """What a node does that another run would not do alike; nothing where it does no such thing."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=kept), attr=word)) if (
            kept in shared and word in _ADDS
        ):
            # A module's list or set that grows; the name may not be one that was imported.
            return _KEEPS if kept not in module.names else ""
        case ast.Call():
            return _call(node, module)
        case ast.AugAssign(target=ast.Name(id=kept)) if kept in shared:
            return _KEEPS
        case ast.AugAssign(target=ast.Subscript(value=ast.Name(id=kept))) if kept in shared:
            return _KEEPS
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=kept))], value=value) if kept in shared:
            # A table of answers that were worked out before is right; a count made of itself is not.
            reads = any(isinstance(one, ast.Name) and one.id == kept for one in ast.walk(value))
            return _KEEPS if reads else ""
        case _:
            return ""


def _call(node: ast.Call, module: _Module) -> str:
    name = _dotted(node.func, module)
    if name in _SEEDED:
        return "" if node.args or node.keywords else _CHANCE
    if name in _CALLS:
        return _CALLS[name]
    return next(
        (what for start, what in _CALLS.items() if start.endswith(".") and name.startswith(start)), ""
    )


def _dotted(node: ast.AST, module: _Module) -> str:
    """The full name of what is called, when it begins with an imported name."""
    words: list[str] = []
    while isinstance(node, ast.Attribute):
        words.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in module.names:
        return ""
    return ".".join([module.names[node.id], *words])
