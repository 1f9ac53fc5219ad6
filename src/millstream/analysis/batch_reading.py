"""One function of a batch, statement by statement: which names hold the batch, and what is done with them."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from millstream.analysis.batch_calls import (
    KEEP_ALL_ROWS,
    PERSIST,
    VIEWS,
    Call,
    adds,
    constant,
    fixed,
    merges,
    refuses_what_is_there,
    written,
)
from millstream.analysis.dataflow import BatchCode, BatchWrite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from millstream.diagnostics.finding import Span

_LOGS = frozenset({"print", "debug", "info", "warning", "warn", "error", "exception", "log", "critical"})
_ENDS = frozenset({"exit", "_exit", "quit", "abort", "kill", "stop"})
_ANYTHING = frozenset({"Exception", "BaseException"})
_DEEPEST = 3


@dataclass
class Reading:
    """What is known of a function that is given a batch `frame` and its number `batch_id`."""

    frame: str
    batch_id: str
    helpers: Mapping[str, ast.FunctionDef]
    spans: Callable[[ast.AST], Span]
    depth: int = 0
    frames: set[str] = field(default_factory=set)
    """Names that hold the batch, or what was made of it."""
    whole: set[str] = field(default_factory=set)
    """Those among them that hold every row of it."""
    sessions: set[str] = field(default_factory=set)
    """Names that hold the batch's own session, or one that is not known."""
    opaque: bool = False

    def of(
        self, function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, shown: BatchCode
    ) -> BatchCode:
        """`shown` with all that the function's body says."""
        body: Sequence[ast.stmt] = (
            [ast.Expr(function.body)] if isinstance(function, ast.Lambda) else function.body
        )
        self.frames, self.whole = {self.frame}, {self.frame}
        self._follow(body)
        calls = [Call.of(one) for part in body for one in ast.walk(part) if isinstance(one, ast.Call)]
        inner = [told for call in calls if (told := self._helped(call)) is not None]
        writes = [write for call in calls if (write := self._write(call)) is not None]
        return replace(
            shown,
            uses_batch_id=self._numbered(body) or any(one.uses_batch_id for one in inner),
            writes=(*writes, *(made for one in inner for made in one.writes)),
            actions=tuple(self._most(body)),
            persisted=any(self._on_batch(call) and PERSIST & {*call.names} for call in calls),
            swallowed=(*self._swallowed(body), *(span for one in inner for span in one.swallowed)),
            collected=(*self._collected(calls), *(span for one in inner for span in one.collected)),
            outer_session=tuple(self._elsewhere(calls)),
            opaque=self.opaque or any(one.opaque for one in inner),
        )

    def _follow(self, body: Sequence[ast.stmt]) -> None:
        """Learn which names hold the batch, in the order of the lines."""
        for part in body:
            for one in ast.walk(part):
                if isinstance(one, ast.Assign | ast.AnnAssign) and one.value is not None:
                    targets = one.targets if isinstance(one, ast.Assign) else [one.target]
                    for target in targets:
                        self._assign(target, one.value)
                if isinstance(one, ast.Call):
                    self._see(Call.of(one))

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if not isinstance(target, ast.Name):
            return
        call = Call.of(value)
        self.sessions.add(target.id)
        if call.root in self.frames or any(name in self.frames for name in call.given):
            self.frames.add(target.id)
            kept = call.root in self.whole and set(call.names) <= KEEP_ALL_ROWS
            (self.whole.add if kept else self.whole.discard)(target.id)
        else:
            self.frames.discard(target.id)

    def _see(self, call: Call) -> None:
        """A batch that is handed to code of another file, or to a function of a row, is out of sight."""
        handed = any(name in self.frames for name in call.given)
        if handed and not call.names and call.root not in self.helpers and call.root not in _LOGS:
            self.opaque = True
        if handed and call.names and call.root not in self.frames and not merges(call):
            self.opaque = True
        if self._on_batch(call) and {"foreach", "foreachPartition", "transform"} & {*call.names}:
            self.opaque = True

    def _on_batch(self, call: Call) -> bool:
        return call.root in self.frames

    def _action(self, call: Call) -> bool:
        """Does a call run every row of the batch?"""
        if self._on_batch(call):
            return call.runs
        return merges(call) and any(name in self.frames for name in call.given)

    def _write(self, call: Call) -> BatchWrite | None:
        """The write that a call is, when its way can be read."""
        if self._on_batch(call) and (form := written(call)) is not None:
            local = self.sessions | self.frames | {self.frame, self.batch_id}
            refuses = not self.depth and refuses_what_is_there(call)
            return BatchWrite(
                form,
                adds(call),
                self.spans(call.node),
                once=refuses and fixed(call, local),
                no_replay=refuses and fixed(call, local - {self.batch_id}),
            )
        return None

    def _helped(self, call: Call) -> BatchCode | None:
        """What a function of the same file does with the batch that it is given as an argument."""
        function = self.helpers.get(call.root) if not call.names else None
        if function is None or not any(name in self.frames for name in call.given):
            return None
        if self.depth == _DEEPEST:
            return BatchCode(function.name, opaque=True)
        names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
        bound = dict(zip(names, call.given, strict=False)) | call.named
        mine = next((name for name, given in bound.items() if given in self.frames), None)
        number = next((name for name, given in bound.items() if given == self.batch_id), "")
        if mine is None:
            return BatchCode(function.name, opaque=True)
        reading = Reading(mine, number, self.helpers, self.spans, self.depth + 1)
        return reading.of(function, BatchCode(function.name))

    def _numbered(self, body: Sequence[ast.stmt]) -> bool:
        """Is the batch's number used for more than a line of a log?"""
        if not self.batch_id:
            return False
        waiting: list[ast.AST] = list(body)
        while waiting:
            here = waiting.pop()
            if isinstance(here, ast.Call):
                call = Call.of(here)
                if (call.names[-1] if call.names else call.root) in _LOGS:
                    continue
                if not call.names and call.root in self.helpers:
                    # What the helper does with it is read there.
                    waiting += [one for one in here.args if not isinstance(one, ast.Name)]
                    continue
            if isinstance(here, ast.Name) and here.id == self.batch_id:
                return True
            waiting.extend(ast.iter_child_nodes(here))
        return False

    def _most(self, body: Sequence[ast.stmt]) -> list[Span]:
        """The places of the actions on the way through the statements that has the most of them."""
        so_far: list[Span] = []
        best: list[Span] = []
        for part in body:
            if isinstance(part, ast.If):
                so_far += self._runs(part.test)
                yes, no = self._most(part.body), self._most(part.orelse)
                for way, other, statements in ((yes, no, part.body), (no, yes, part.orelse)):
                    if statements and isinstance(statements[-1], ast.Return | ast.Raise):
                        best = _longest(best, so_far + way)
                        so_far += other
                        break
                else:
                    so_far += _longest(yes, no)
            elif isinstance(part, ast.For | ast.While):
                inside = self._most(part.body)
                tries = any(isinstance(one, ast.Try) for one in part.body)
                so_far += inside if tries else inside * 2
            elif isinstance(part, ast.Try):
                so_far += self._most(part.body) + self._most(part.orelse) + self._most(part.finalbody)
            elif isinstance(part, ast.With):
                so_far += self._most(part.body)
            elif isinstance(part, ast.Match):
                ways: list[list[Span]] = [self._most(case.body) for case in part.cases]
                so_far += _longest(*ways)
            elif not isinstance(part, ast.FunctionDef | ast.ClassDef):
                so_far += self._runs(part)
        return _longest(best, so_far)

    def _runs(self, node: ast.AST) -> list[Span]:
        found = []
        for one in ast.walk(node):
            if isinstance(one, ast.Call):
                call = Call.of(one)
                inner = self._helped(call)
                found += list(inner.actions) if inner else [self.spans(one)] if self._action(call) else []
        return found

    def _swallowed(self, body: Sequence[ast.stmt]) -> Iterator[Span]:
        """Clauses that catch anything around a write and neither raise, end, nor write the batch elsewhere.

        A function that raises anywhere else may raise what it caught, so nothing is said of it.
        """
        nodes = [one for part in body for one in ast.walk(part)]
        handlers = {
            id(one)
            for clause in nodes
            if isinstance(clause, ast.ExceptHandler)
            for one in ast.walk(clause)
            if isinstance(one, ast.Raise)
        }
        if any(isinstance(one, ast.Raise) and id(one) not in handlers for one in nodes):
            return
        for one in nodes:
            if not isinstance(one, ast.Try) or not any(self._touched(part) for part in one.body):
                continue
            for clause in one.handlers:
                if _catches_anything(clause) and not self._answers(clause):
                    yield self.spans(clause)

    def _touched(self, part: ast.stmt) -> bool:
        """Is the batch written, or handed on, in a statement?"""
        calls = [Call.of(one) for one in ast.walk(part) if isinstance(one, ast.Call)]
        return any(
            self._action(call)
            or {"foreach", "foreachPartition"} & {*call.names}
            or (not call.names and call.root not in _LOGS and {*call.given} & self.frames)
            for call in calls
        )

    def _answers(self, clause: ast.ExceptHandler) -> bool:
        """Does a clause raise, end the process, or do something else with the batch?"""
        for one in ast.walk(clause):
            if isinstance(one, ast.Raise):
                return True
            if isinstance(one, ast.Call):
                call = Call.of(one)
                if (call.names[-1] if call.names else call.root) in _ENDS:
                    return True
                if (call.root in self.frames and call.runs) or {*call.given} & self.frames:
                    return True
        return False

    def _collected(self, calls: Sequence[Call]) -> Iterator[Span]:
        """Calls that bring every row of the batch into the driver."""
        for call in calls:
            brings = call.names and call.names[-1] in ("collect", "toPandas", "toArrow")
            if brings and call.root in self.whole and set(call.names[:-1]) <= KEEP_ALL_ROWS:
                yield self.spans(call.node)

    def _elsewhere(self, calls: Sequence[Call]) -> Iterator[tuple[str, Span]]:
        """Views of the batch that a session from outside of the function reads."""
        views = {
            name
            for call in calls
            if self._on_batch(call)
            and call.names
            and call.names[-1] in VIEWS
            and (name := constant(call.node))
        }
        for call in calls:
            outside = call.root not in self.frames | self.sessions | {self.frame, self.batch_id}
            if outside and call.root and call.names in (("sql",), ("table",)):
                text = constant(call.node) or ""
                for name in sorted(views):
                    if re.search(rf"\b{re.escape(name)}\b", text):
                        yield name, self.spans(call.node)


def _longest(*ways: list[Span]) -> list[Span]:
    return max(ways, key=len)


def _catches_anything(clause: ast.ExceptHandler) -> bool:
    """A bare `except`, or one of the classes that hold every failure."""
    kinds = clause.type.elts if isinstance(clause.type, ast.Tuple) else [clause.type]
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in _ANYTHING) for kind in kinds)
