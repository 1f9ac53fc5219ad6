"""Read a foreachBatch function statement by statement: what it does with the batch."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from millstream.analysis.python.batch_id import BatchIdUses
from millstream.analysis.python.call_chain import (
    KEEP_ALL_ROWS,
    LOG_FUNCTIONS,
    PERSIST,
    READING_FUNCTIONS,
    VIEWS,
    CallChain,
    bind_literals,
    fails_if_exists,
    find_changing_parameters,
    find_glue_format,
    find_write_format,
    get_string_argument,
    has_fixed_target,
    ignores_if_exists,
    is_append,
    is_merge,
    writes_rows,
)
from millstream.analysis.python.execution_paths import find_guarded_calls, find_longest_path
from millstream.analysis.python.frame_names import ASKING, COLLECT, FrameNames, list_parameters, walk_body
from millstream.analysis.python.swallowed_failures import list_hiding_clauses
from millstream.analysis.query.plan_model import BatchCode, BatchWrite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from millstream.diagnostics.finding import Span

_EXIT_FUNCTIONS = frozenset({"exit", "_exit", "quit", "abort", "kill", "stop"})
# Connections of AWS Glue whose rows replace those of the same key.
_REPLACED_BY_KEY = frozenset({"dynamodb"})
_MAX_DEPTH = 3


@dataclass(frozen=True)
class HelperFile:
    """The other file of a helper: its functions, and the spans of its nodes."""

    helpers: Mapping[str, ast.FunctionDef]
    spans: Callable[[ast.AST], Span]


@dataclass
class BatchFunctionFacts:
    """Facts about a function whose parameter `names.frame` is the batch, and `batch_id` its number."""

    names: FrameNames
    batch_id: str
    spans: Callable[[ast.AST], Span]
    depth: int = 0
    has_collected: bool = False
    """True if the function takes rows of the batch into the driver, or gets such a row."""
    changing: set[str] = field(default_factory=set)
    """Parameters whose values are not the same for every batch, or are not known."""
    is_guarded: bool = False
    """True if the function is a helper that is not called in every batch with rows."""
    guarded: set[int] = field(default_factory=set)
    """The `id()` of calls that do not run in every batch with rows."""
    files: Mapping[int, HelperFile] = field(default_factory=dict)
    """The files of helpers that are in another one, by their `id()`."""

    def of(self, function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, code: BatchCode) -> BatchCode:
        """Return `code` with the facts of the function's body."""
        body: Sequence[ast.stmt] = (
            [ast.Expr(function.body)] if isinstance(function, ast.Lambda) else function.body
        )
        self.names.track(body)
        about_batch = self.names.frames | self.names.figures
        self.guarded = find_guarded_calls(body, about_batch)
        calls = [
            CallChain.of(node) for node in walk_body(body, self.names.frames) if isinstance(node, ast.Call)
        ]
        self.has_collected |= any(self.names.is_on_batch(call) and COLLECT & {*call.names} for call in calls)
        helpers_facts = [
            helper_facts for call in calls if (helper_facts := self._read_helper(call)) is not None
        ]
        uses = BatchIdUses(self.batch_id, frozenset(about_batch), self.names.helpers).read(body)
        writes = [
            replace(write, has_batch_id=uses.is_in_write(call))
            for call in calls
            if (write := self._find_write(call)) is not None
        ]
        return replace(
            code,
            uses_batch_id=uses.is_used or any(node.uses_batch_id for node in helpers_facts),
            recognises_repeats=uses.recognises_repeats
            or any(node.recognises_repeats for node in helpers_facts),
            writes=(*writes, *(helper_write for node in helpers_facts for helper_write in node.writes)),
            actions=tuple(find_longest_path(body, self._list_actions)),
            is_persisted=any(self.names.is_on_batch(call) and PERSIST & {*call.names} for call in calls)
            or any(node.is_persisted for node in helpers_facts),
            swallowing_clauses=(
                *self._find_swallowed(body),
                *(span for node in helpers_facts for span in node.swallowing_clauses),
            ),
            collected=(
                *self._find_collected(calls),
                *(span for node in helpers_facts for span in node.collected),
            ),
            outer_session_views=tuple(self._find_outer_views(calls)),
            is_opaque=self.names.is_passed_on or any(node.is_opaque for node in helpers_facts),
        )

    @property
    def _local_names(self) -> set[str]:
        """The names whose values may differ from batch to batch."""
        names = self.names
        return names.sessions | names.frames | self.changing | {names.frame, self.batch_id}

    def _is_action(self, call: CallChain) -> bool:
        """Return whether a call processes every row of the batch."""
        if self.names.is_on_batch(call):
            # A few rows at most: whether the batch has any.
            is_look = call.names[:1] == ("limit",) and len(call.names) == 2 and not find_write_format(call)
            return call.executes and call.root not in self.names.taken and not is_look
        is_write = is_merge(call) or find_glue_format(call) is not None
        return is_write and any(name in self.names.frames - self.names.taken for name in call.positional)

    def _find_write(self, call: CallChain) -> BatchWrite | None:
        """Return the write of a call, if it is one."""
        if self.names.is_on_batch(call) and (format_name := find_write_format(call)) is not None:
            is_unguarded = id(call.node) not in self.guarded and not self.is_guarded
            is_refusing = is_unguarded and fails_if_exists(call)
            has_one_target = has_fixed_target(call, self._local_names)
            return BatchWrite(
                format_name,
                is_append(call),
                self.spans(call.node),
                refuses_existing=is_refusing and has_one_target,
                cannot_replay=is_refusing and has_fixed_target(call, self._local_names - {self.batch_id}),
                ignores_existing=is_unguarded and ignores_if_exists(call) and has_one_target,
            )
        glue_format = find_glue_format(call)
        if glue_format is not None and any(name in self.names.frames for name in call.positional):
            return BatchWrite(glue_format, glue_format not in _REPLACED_BY_KEY, self.spans(call.node))
        return None

    def _read_helper(self, call: CallChain) -> BatchCode | None:
        """Read a function of the project that gets the batch, or a row of it, as an argument."""
        function = self.names.helpers.get(call.root) if not call.names else None
        is_passed_on = any(name in self.names.frames for name in call.positional)
        if function is None or not (is_passed_on or self.names.rows & {*call.positional}):
            return None
        if self.depth == _MAX_DEPTH:
            return BatchCode(function.name, is_opaque=is_passed_on)
        parameters = list_parameters(function)
        bindings = dict(zip(parameters, call.positional, strict=False)) | call.keywords
        frame_parameter = next(
            (name for name, argument_name in bindings.items() if argument_name in self.names.frames), None
        )
        batch_id_parameter = next(
            (name for name, argument_name in bindings.items() if argument_name == self.batch_id), ""
        )
        row_parameters = {
            name for name, argument_name in bindings.items() if argument_name in self.names.rows
        }
        if frame_parameter is None and not row_parameters:
            return BatchCode(function.name, is_opaque=is_passed_on)
        file = self.files.get(id(function), HelperFile(self.names.helpers, self.spans))
        visitor = BatchFunctionFacts(
            FrameNames(frame_parameter or "", file.helpers, row_parameters),
            batch_id_parameter,
            file.spans,
            self.depth + 1,
            has_collected=self.has_collected,
            changing=find_changing_parameters(parameters, call, self._local_names),
            is_guarded=self.is_guarded or id(call.node) in self.guarded,
            files=self.files,
        )
        return visitor.of(bind_literals(function, call), BatchCode(function.name))

    def _list_actions(self, node: ast.AST) -> list[Span]:
        spans = []
        for child in ast.walk(node):
            if isinstance(child, ast.Call):
                call = CallChain.of(child)
                helper_facts = self._read_helper(call)
                if helper_facts is None:
                    spans += [self.spans(child)] if self._is_action(call) else []
                elif {*call.positional} & self.names.frames - self.names.taken:
                    spans += helper_facts.actions
        return spans

    def _find_swallowed(self, body: Sequence[ast.stmt]) -> Iterator[Span]:
        """Yield `except` clauses around a write that catch anything and neither raise, exit, nor write elsewhere."""
        for attempt, clauses in list_hiding_clauses(body):
            if any(self._uses_batch(statement) for statement in attempt.body):
                yield from (self.spans(clause) for clause in clauses if not self._handles_failure(clause))

    def _uses_batch(self, statement: ast.stmt) -> bool:
        """Return whether a statement writes the batch or passes it on."""
        calls = [CallChain.of(node) for node in ast.walk(statement) if isinstance(node, ast.Call)]
        return any(
            (self._is_action(call) and not ASKING & {*call.names[-1:]})
            or {"foreach", "foreachPartition"} & {*call.names}
            or (not call.names and not self._only_reads(call) and {*call.positional} & self.names.frames)
            or (self.has_collected and (writes_rows(call) or self._passes_rows(call)))
            for call in calls
        )

    def _only_reads(self, call: CallChain) -> bool:
        """Return whether a function logs its arguments, or is one of Python's that does nothing with them."""
        is_of_python = call.root in READING_FUNCTIONS and call.root not in self.names.helpers
        return is_of_python or call.root in LOG_FUNCTIONS

    def _passes_rows(self, call: CallChain) -> bool:
        """Return whether a call gives a row to a function of the same file that writes it."""
        function = self.names.helpers.get(call.root) if not call.names else None
        return (
            function is not None
            and bool(self.names.rows & {*call.positional})
            and any(
                writes_rows(CallChain.of(node)) for node in ast.walk(function) if isinstance(node, ast.Call)
            )
        )

    def _handles_failure(self, clause: ast.ExceptHandler) -> bool:
        """Return whether a clause raises, ends the process, or uses the batch otherwise."""
        for node in ast.walk(clause):
            if isinstance(node, ast.Raise):
                return True
            if isinstance(node, ast.Call):
                call = CallChain.of(node)
                if (call.names[-1] if call.names else call.root) in _EXIT_FUNCTIONS:
                    return True
                if (call.root in self.names.frames and call.executes) or {
                    *call.positional
                } & self.names.frames:
                    return True
                if {*call.positional} & self.names.rows and (
                    call.names[-1] if call.names else ""
                ) not in LOG_FUNCTIONS:
                    # The rows go elsewhere.
                    return True
        return False

    def _find_collected(self, calls: Sequence[CallChain]) -> Iterator[Span]:
        """Yield calls that collect every row of the batch in the driver."""
        for call in calls:
            is_collect = call.names and call.names[-1] in ("collect", "toPandas", "toArrow")
            if is_collect and call.root in self.names.full_batches and set(call.names[:-1]) <= KEEP_ALL_ROWS:
                yield self.spans(call.node)

    def _find_outer_views(self, calls: Sequence[CallChain]) -> Iterator[tuple[str, Span]]:
        """Yield temporary views of the batch that another session reads."""
        names = self.names
        views = {
            name
            for call in calls
            if self.names.is_on_batch(call)
            and call.names
            and call.names[-1] in VIEWS
            and (name := get_string_argument(call.node))
        }
        for call in calls:
            is_other_session = call.root not in names.frames | names.sessions | {names.frame, self.batch_id}
            if is_other_session and call.root and call.names in (("sql",), ("table",)):
                text = get_string_argument(call.node) or ""
                for name in sorted(views):
                    if re.search(rf"\b{re.escape(name)}\b", text):
                        yield name, self.spans(call.node)
