"""Where a foreachBatch function uses the batch id, and whether it can recognise a repeated batch by it."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.analysis.python.call_chain import (
    LOG_FUNCTIONS,
    CallChain,
    find_glue_format,
    find_write_format,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

# Functions whose result only contains the batch id in other words: a text, a path, a column.
_REWORDING = frozenset(
    {"str", "int", "repr", "format", "join", "joinpath", "Path", "lit", "zfill", "min", "max"}
)
# Names of the project's own functions that write a log, if nothing uses their result.
_OWN_LOG = re.compile(r"_*log_\w+")
_DISPLAYS = (ast.Dict, ast.List, ast.Tuple, ast.Set)


@dataclass
class BatchIdUses:
    """The uses of the parameter `batch_id` in a function whose batch has the names `frames`."""

    batch_id: str
    frames: frozenset[str]
    helpers: Mapping[str, ast.FunctionDef]
    values: set[str] = field(default_factory=set)
    """Names of the batch id, and of texts and numbers made from it."""
    marked_frames: set[str] = field(default_factory=set)
    """Names of DataFrames made from the batch and the batch id."""
    reports: set[str] = field(default_factory=set)
    """Names of dictionaries, lists, tuples and sets that contain the batch id next to other figures."""
    is_used: bool = False
    """True if the batch id is used for more than a log line."""
    recognises_repeats: bool = False
    """True if a use may recognise a repeated batch: a condition, a call of other code. What it does is not known."""

    def read(self, body: Sequence[ast.stmt]) -> BatchIdUses:
        """Find the uses in the statements of a function. Return this object."""
        if self.batch_id:
            self.values = {self.batch_id}
            assignments = [node for part in body for node in ast.walk(part) if isinstance(node, ast.Assign)]
            before = -1
            while before != len(self.values) + len(self.marked_frames):
                before = len(self.values) + len(self.marked_frames)
                for assignment in assignments:
                    self._follow(assignment)
            self.is_used = self._is_in(body, {self.batch_id})
            for statement in body:
                self._read(statement)
        return self

    def is_in_write(self, call: CallChain) -> bool:
        """Return whether the rows or the options of a write contain the batch id.

        A folder or a table for each batch does not count: a repeated batch is added to the same one.
        """
        node = call.node
        if call.root in self.marked_frames or {*call.positional} & self.marked_frames:
            return True
        if not isinstance(node, ast.Call):
            return False
        parts = [node.func, *(keyword.value for keyword in node.keywords)]
        return self._is_in(parts, self.values | self.reports)

    def _follow(self, assignment: ast.Assign) -> None:
        names = {target.id for target in assignment.targets if isinstance(target, ast.Name)}
        call = CallChain.of(assignment.value)
        arguments = {call.root, *call.positional}
        if self._is_report(assignment.value):
            self.reports |= names
        elif not arguments & self.frames:
            if self._is_reworded(assignment.value):
                self.values |= names
        elif arguments & self.marked_frames or self._is_in([assignment.value], self.values | self.reports):
            self.marked_frames |= names

    def _is_reworded(self, value: ast.expr) -> bool:
        """Return whether an expression contains the batch id, and no result of other code."""
        calls = (CallChain.of(node) for node in ast.walk(value) if isinstance(node, ast.Call))
        return self._is_in([value], self.values) and all(_last_name(call) in _REWORDING for call in calls)

    def _is_report(self, value: ast.expr) -> bool:
        """Return whether an expression collects the batch id next to other figures, and gives it to no other code."""
        if not isinstance(value, _DISPLAYS) or not self._is_in([value], self.values):
            return False
        calls = (CallChain.of(node) for node in ast.walk(value) if isinstance(node, ast.Call))
        return all(
            _last_name(call) in _REWORDING or not self._is_in([call.node], self.values) for call in calls
        )

    def _is_in(self, nodes: Iterable[ast.AST], names: set[str]) -> bool:
        return any(isinstance(node, ast.Name) and node.id in names for node in self._list_nodes(nodes))

    def _list_nodes(self, nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
        """Yield the nodes below `nodes`, without those of log lines and those that a helper reads itself."""
        pending = list(nodes)
        while pending:
            node = pending.pop()
            if _is_log_line(node):
                continue
            if isinstance(node, ast.Call):
                call = CallChain.of(node)
                if _last_name(call) in LOG_FUNCTIONS:
                    continue
                if self._is_helper(call):
                    pending += [argument for argument in node.args if not isinstance(argument, ast.Name)]
                    continue
            yield node
            pending.extend(ast.iter_child_nodes(node))

    def _is_helper(self, call: CallChain) -> bool:
        """Return whether a call gives the batch to a function of the same file, which is read by itself."""
        return not call.names and call.root in self.helpers and bool({*call.positional} & self.frames)

    def _read(self, node: ast.AST) -> None:
        """Look for uses that may recognise a repeated batch."""
        if (
            isinstance(node, ast.Raise)
            or _is_log_line(node)
            or (isinstance(node, ast.Compare) and self._is_of_constants(node))
        ):
            return
        if isinstance(node, ast.Assign) and all(isinstance(target, ast.Name) for target in node.targets):
            call = CallChain.of(node.value)
            is_of_batch = bool({call.root, *call.positional} & self.frames)
            if is_of_batch or self._is_reworded(node.value) or self._is_report(node.value):
                return
        if isinstance(node, ast.Call):
            call = CallChain.of(node)
            is_write = find_write_format(call) is not None or find_glue_format(call) is not None
            if is_write or _last_name(call) in LOG_FUNCTIONS:
                return
            # Other code may look for the batch id among the figures.
            self.recognises_repeats |= bool(self.reports & {*call.positional})
            if self._is_helper(call):
                for argument in node.args:
                    if not isinstance(argument, ast.Name):
                        self._read(argument)
                return
        is_value = isinstance(node, ast.Name) and node.id in self.values and isinstance(node.ctx, ast.Load)
        if is_value or self._is_item_of_report(node):
            self.recognises_repeats = True
        for child in ast.iter_child_nodes(node):
            self._read(child)

    def _is_item_of_report(self, node: ast.AST) -> bool:
        """Return whether an expression takes the batch id, or an item with an unknown key, from a report."""
        if not (isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)):
            return False
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        is_other_figure = isinstance(key, str) and not re.search("batch|epoch|id", key, re.IGNORECASE)
        return node.value.id in self.reports and not is_other_figure

    def _is_of_constants(self, node: ast.Compare) -> bool:
        """Return whether a comparison is of the batch id with constants: every tenth batch, the first one."""
        return all(
            isinstance(
                child, ast.Constant | ast.operator | ast.cmpop | ast.expr_context | ast.Compare | ast.BinOp
            )
            or (isinstance(child, ast.Name) and child.id in self.values)
            for child in ast.walk(node)
        )


def _is_log_line(node: ast.AST) -> bool:
    """Return whether a statement only calls a function that is called after a log, such as `self._log_memory(…)`."""
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        return False
    return _OWN_LOG.fullmatch(_last_name(CallChain.of(node.value))) is not None


def _last_name(call: CallChain) -> str:
    return call.names[-1] if call.names else call.root
