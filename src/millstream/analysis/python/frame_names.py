"""Find the names of a batch in a foreachBatch function, and of what is made of it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.analysis.python.call_chain import (
    GLUE_CONVERSIONS,
    KEEP_ALL_ROWS,
    LOG_FUNCTIONS,
    CallChain,
    find_glue_format,
    is_merge,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

COLLECT = frozenset({"collect", "toPandas", "toArrow", "toLocalIterator"})
# Actions that only ask about a batch. Without their result the rows are written nevertheless.
ASKING = frozenset({"count"})
# Results of an action that are rows in the driver: what is made of them does not compute the batch again.
_TAKEN = COLLECT | {"first", "head", "take", "tail"}
# Functions of Python whose result is no DataFrame.
_FIGURES = frozenset({"len", "int", "float", "str", "bool", "min", "max", "sum", "round"})
# Attributes of a DataFrame that are none.
_ATTRIBUTES = frozenset({"columns", "dtypes", "schema", "isStreaming", "storageLevel"})
_SESSION = "sparkSession"


@dataclass
class FrameNames:
    """The names in a function that has the batch as its parameter `frame`, `""` if it has rows of it only."""

    frame: str
    helpers: Mapping[str, ast.FunctionDef]
    rows: set[str] = field(default_factory=set)
    """Names of rows that a loop over the collected batch takes, and of parts of them."""
    frames: set[str] = field(default_factory=set)
    """Names of the batch, or of DataFrames derived from it."""
    full_batches: set[str] = field(default_factory=set)
    """Names in `frames` that contain every row of the batch."""
    sessions: set[str] = field(default_factory=set)
    """Names of the batch's own session, or of an unknown one."""
    figures: set[str] = field(default_factory=set)
    """Names of what is known about the batch: its count, its columns, or a model that is trained with it."""
    taken: set[str] = field(default_factory=set)
    """Names in `frames` whose rows an action has taken into the driver."""
    own_sessions: set[str] = field(default_factory=set)
    """Names of the batch's own session."""
    is_passed_on: bool = False
    """True if code that is not read gets the batch: another file's, or a function for each row."""
    _lists: dict[str, ast.expr] = field(default_factory=dict)
    """Lists, tuples and dictionaries, by their names."""

    def track(self, body: Sequence[ast.stmt]) -> None:
        """Find the names, in the order of the lines. Inner functions become helpers."""
        inner = (
            node for statement in body for node in ast.walk(statement) if isinstance(node, ast.FunctionDef)
        )
        self.helpers = {**self.helpers, **{function.name: function for function in inner}}
        self.frames = {self.frame} if self.frame else set()
        self.full_batches = set(self.frames)
        for node in walk_body(body, {self.frame}):
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    self._track_assignment(target, node.value)
            if isinstance(node, ast.Call):
                self._track_call(CallChain.of(node))
            if isinstance(node, ast.For):
                self._track_loop(node)

    def is_on_batch(self, call: CallChain) -> bool:
        """Return whether methods are called on the batch, or on what a function of this file makes of it."""
        is_of_helper = bool(call.names) and call.root in self.helpers
        return self._is_of_batch(call) or (
            is_of_helper and any(name in self.frames for name in call.first_arguments)
        )

    def _track_loop(self, loop: ast.For) -> None:
        call = CallChain.of(loop.iter)
        if {call.root, *call.positional} & (self.frames | self.rows):
            self.rows |= {part.id for part in ast.walk(loop.target) if isinstance(part, ast.Name)}
        for values in self._list_rounds(loop.iter):
            self._track_assignment(loop.target, values)

    def _list_rounds(self, iterated: ast.expr) -> Iterator[ast.expr]:
        """Yield the values that a loop over a list, or the items of a dictionary, takes in its rounds."""
        if isinstance(iterated, ast.Name):
            iterated = self._lists.get(iterated.id, iterated)
        if isinstance(iterated, ast.List | ast.Tuple):
            yield from iterated.elts
        if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Attribute):
            owner = iterated.func.value
            owner = self._lists.get(owner.id, owner) if isinstance(owner, ast.Name) else owner
            if isinstance(owner, ast.Dict) and iterated.func.attr == "values":
                yield from owner.values
            if isinstance(owner, ast.Dict) and iterated.func.attr == "items":
                for key, value in zip(owner.keys, owner.values, strict=True):
                    yield ast.Tuple([key or ast.Constant(None), value], ast.Load())

    def _track_assignment(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple):
            is_pairwise = isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts)
            for position, part in enumerate(target.elts):
                self._track_assignment(
                    part, value.elts[position] if is_pairwise and isinstance(value, ast.Tuple) else value
                )
        if not isinstance(target, ast.Name):
            return
        if isinstance(value, ast.List | ast.Tuple | ast.Dict):
            self._lists[target.id] = value
        call = CallChain.of(value)
        self.sessions.add(target.id)
        if call.root in self.rows:
            self.rows.add(target.id)
        sources = {call.root, *self._list_arguments(call)} & self.frames
        is_frame = self._is_of_batch(call) or bool({*self._list_arguments(call)} & self.frames)
        is_taken = bool(_TAKEN & {*call.names}) or (bool(sources) and sources <= self.taken)
        keeps_all_rows = call.root in self.full_batches and set(call.names) <= KEEP_ALL_ROWS
        for names, is_one in (
            (self.own_sessions, call.root in self.frames and call.names[-1:] == (_SESSION,)),
            (self.figures, bool(sources or call.root in self.figures) and _is_figure(call)),
            (self.frames, is_frame and not _is_figure(call)),
            (self.taken, is_frame and is_taken),
            (self.full_batches, is_frame and keeps_all_rows),
        ):
            (names.add if is_one else names.discard)(target.id)

    def _list_arguments(self, call: CallChain) -> Iterator[str]:
        """Yield the names among the arguments of a call, and of helpers' calls that are its arguments."""
        yield from call.positional
        if not call.names and call.root in self.helpers and isinstance(call.node, ast.Call):
            for argument in call.node.args:
                yield from self._list_arguments(CallChain.of(argument))

    def _track_call(self, call: CallChain) -> None:
        is_passed_on = any(name in self.frames for name in call.positional)
        if (
            is_passed_on
            and not call.names
            and call.root not in self.helpers
            and call.root not in LOG_FUNCTIONS
        ):
            self.is_passed_on = True
        is_read = (
            is_merge(call) or find_glue_format(call) is not None or GLUE_CONVERSIONS & {*call.names[-1:]}
        )
        if is_passed_on and call.names and call.root not in self.frames and not is_read:
            self.is_passed_on = True
        if self.is_on_batch(call) and {"foreach", "foreachPartition", "transform"} & {*call.names}:
            self.is_passed_on = True

    def _is_of_batch(self, call: CallChain) -> bool:
        """Return whether a chain begins with the batch, or with a query in its session, which can read its views."""
        if call.root in self.frames and _SESSION not in call.names:
            return True
        if call.root not in self.frames | self.own_sessions:
            return False
        names = call.names[call.names.index(_SESSION) + 1 :] if _SESSION in call.names else call.names
        return names[:1] in (("sql",), ("table",))


def walk_body(body: Sequence[ast.stmt], frames: Collection[str]) -> Iterator[ast.AST]:
    """Yield the nodes of a function, without inner functions that have a parameter of one of these names."""
    for statement in body:
        nodes: list[ast.AST] = [statement]
        for node in nodes:
            if not (isinstance(node, ast.FunctionDef) and {*list_parameters(node)} & {*frames}):
                yield node
                nodes.extend(ast.iter_child_nodes(node))


def list_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[str]:
    """Return the names of a function's positional parameters."""
    return [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]


def _is_figure(call: CallChain) -> bool:
    """Return whether what is taken from a batch is a number, a text, its columns or a model, and no DataFrame."""
    if not call.names:
        return call.root in _FIGURES
    if isinstance(call.node, ast.Attribute):
        return call.names[-1] in _ATTRIBUTES or "fit" in call.names
    return call.names[-1] in ("isEmpty", "fit") or (call.executes and call.names[-1] in ASKING)
