"""Find impure code in functions that Spark calls for rows, which gives another result when a batch runs again."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.analysis.python.parsing import count_characters, parse_or_none

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_UDF_DECORATORS = frozenset({"udf", "pandas_udf", "arrow_udf", "udtf", "arrow_udtf"})
_UDF_METHODS = frozenset(
    {"applyInPandas", "applyInArrow", "mapInPandas", "mapInArrow", "register"}
    | {"applyInPandasWithState", "transformWithState", "transformWithStateInPandas"}
)
_CLOCK = "reads the clock"
_RANDOM = "draws a random value"
_NETWORK = "calls another system"
# By the full name of the function; a name that ends with a dot stands for a whole module.
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
    "uuid.uuid1": _RANDOM,
    "uuid.uuid4": _RANDOM,
    "os.urandom": _RANDOM,
    "os.getpid": "reads its process id",
    "random.": _RANDOM,
    "secrets.": _RANDOM,
    "numpy.random.": _RANDOM,
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
# With an argument these are generators with a known seed.
_SEEDED = frozenset(
    {"random.Random", "numpy.random.default_rng", "numpy.random.RandomState", "numpy.random.Generator"}
)
_STATEFUL = "keeps state between calls"
_MUTATORS = frozenset({"append", "add", "extend", "insert", "appendleft", "update"})


@dataclass(frozen=True)
class ImpureCall:
    """An impure call or statement: `what` describes its effect, `call` is the code, shortened."""

    function: str
    what: str
    call: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass
class _ModuleNames:
    lines: list[str]
    names: dict[str, str] = field(default_factory=dict)
    """The full name of each imported name: `datetime.datetime` for `dt`."""
    functions: dict[str, ast.AST] = field(default_factory=dict)
    """Functions and classes by name."""
    variables: set[str] = field(default_factory=set)
    """Names that the module assigns."""


def find_impure_calls(text: str, called: Collection[str] = ()) -> list[ImpureCall]:
    """Find the places where a function that Spark calls for rows depends on more than the rows.

    These are functions wrapped by `udf` and similar, or passed to `mapInPandas` and similar, with the functions of
    the same text that they call; `called` names more of them. Functions declared `asNondeterministic()` are skipped,
    because Spark knows about them. Returns nothing if the text is not Python. Functions of other modules and methods
    of objects are not read.
    """
    tree = parse_or_none(text)
    if tree is None:
        return []
    module = _read_module(tree, text)
    impurities: dict[tuple[int, int], ImpureCall] = {}
    row_functions = [(name, module.functions[name]) for name in called if name in module.functions]
    for name, body in (*_list_row_functions(tree, module), *row_functions):
        for impurity in _find_impurities(body, name, module, set()):
            impurities.setdefault((impurity.line, impurity.column), impurity)
    return sorted(impurities.values(), key=lambda impurity: (impurity.line, impurity.column))


def _read_module(tree: ast.Module, text: str) -> _ModuleNames:
    module = _ModuleNames(text.split("\n"))
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


def _list_row_functions(tree: ast.Module, module: _ModuleNames) -> Iterator[tuple[str, ast.AST]]:
    """Yield each function that Spark calls with rows, by name."""
    declared = {
        name_node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "asNondeterministic"
        for name_node in ast.walk(node.value)
        if isinstance(name_node, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any(
            _find_last_name(argument) in _UDF_DECORATORS for argument in node.decorator_list
        ):
            if node.name not in declared:
                yield node.name, node
        elif isinstance(node, ast.Call) and _find_last_name(node) in _UDF_DECORATORS | _UDF_METHODS:
            arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
            for argument in arguments:
                argument = argument.func if isinstance(argument, ast.Call) else argument
                if isinstance(argument, ast.Lambda):
                    yield "a lambda", argument
                elif (
                    isinstance(argument, ast.Name)
                    and argument.id in module.functions
                    and argument.id not in declared
                ):
                    yield argument.id, module.functions[argument.id]


def _find_last_name(node: ast.AST) -> str:
    """Return the last name of a call: `udf` of `@F.udf("string")`."""
    while isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _find_impurities(
    body: ast.AST, name: str, module: _ModuleNames, visited: set[str]
) -> Iterator[ImpureCall]:
    local_names = {
        node.id for node in ast.walk(body) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    local_names |= {node.arg for node in ast.walk(body) if isinstance(node, ast.arg)}
    global_names = {
        variable for node in ast.walk(body) if isinstance(node, ast.Global) for variable in node.names
    }
    shared = (module.variables - local_names) | (global_names & module.variables)
    for node in ast.walk(body):
        effect = _find_effect(node, module, shared)
        if effect and isinstance(node, ast.expr | ast.stmt):
            call = " ".join(ast.unparse(node).split())
            end_line = node.end_lineno or node.lineno
            yield ImpureCall(
                name,
                effect,
                call if len(call) <= 60 else f"{call[:59]}…",
                node.lineno,
                count_characters(module.lines, node.lineno, node.col_offset),
                end_line,
                count_characters(module.lines, end_line, node.end_col_offset or node.col_offset),
            )
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in module.functions
        ):
            called_name = node.func.id
            if called_name not in visited and called_name not in local_names:
                visited.add(called_name)
                yield from _find_impurities(module.functions[called_name], name, module, visited)


def _find_effect(node: ast.AST, module: _ModuleNames, shared: set[str]) -> str:
    """Describe the impure effect of a node; empty if it has none."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=variable), attr=method)) if (
            variable in shared and method in _MUTATORS
        ):
            # A growing list or set of the module; imported names are ignored.
            return _STATEFUL if variable not in module.names else ""
        case ast.Call():
            return _find_call_effect(node, module)
        case ast.AugAssign(target=ast.Name(id=variable)) if variable in shared:
            return _STATEFUL
        case ast.AugAssign(target=ast.Subscript(value=ast.Name(id=variable))) if variable in shared:
            return _STATEFUL
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=variable))], value=value) if (
            variable in shared
        ):
            # A cache of results is allowed; a counter, which reads its own value, is not.
            reads_itself = any(
                isinstance(child, ast.Name) and child.id == variable for child in ast.walk(value)
            )
            return _STATEFUL if reads_itself else ""
        case _:
            return ""


def _find_call_effect(node: ast.Call, module: _ModuleNames) -> str:
    name = _resolve_name(node.func, module)
    if name in _SEEDED:
        return "" if node.args or node.keywords else _RANDOM
    if name in _CALLS:
        return _CALLS[name]
    return next(
        (effect for prefix, effect in _CALLS.items() if prefix.endswith(".") and name.startswith(prefix)), ""
    )


def _resolve_name(node: ast.AST, module: _ModuleNames) -> str:
    """Return the full name of the called function, if it begins with an imported name."""
    words: list[str] = []
    while isinstance(node, ast.Attribute):
        words.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in module.names:
        return ""
    return ".".join([module.names[node.id], *words])
