"""Compare the operators with state of a query's plan with those of a checkpoint's record."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.plan.change_kinds.state_changes import (
    AggregatesChanged,
    DistinctRowsChanged,
    JoinConditionChanged,
    JoinTypeChanged,
    KeyChanged,
    KeyFilterAdded,
    LimitChanged,
    ProcessorStateChanged,
    StatefulOperatorsChanged,
    StateInputChanged,
    StoredColumnsChanged,
    WatermarkAdded,
    WatermarkColumnChanged,
    WatermarkDelayChanged,
    WatermarkRemoved,
    WindowChanged,
)
from millstream.plan.join_bounds import is_stricter_condition

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.checkpoint.recorded_plan import PlanExpression, RecordedPlan, RecordedStatefulOperator
    from millstream.plan.changes import Change

_WINDOWS = ("window(", "session_window(")
# The optimiser adds it for each key of a join and for the time of a window.
_DERIVED = "filter isnotnull("
_COLUMN = re.compile(r"\b[A-Za-z_]\w*\.\w+")
# Functions with another result for the same key.
_VARYING = ("rand(", "randn(", "uuid(", "current_", "now(", "pythonUDF")


def compare_state(before: RecordedPlan, now: RecordedPlan, output_mode: str) -> Iterator[Change]:
    """Yield the changes of operators with state and of watermarks. `output_mode` is that of the query now."""
    kinds = [tuple(operator.kind for operator in plan.stateful) for plan in (before, now)]
    if kinds[0] != kinds[1]:
        yield StatefulOperatorsChanged(*kinds)
    else:
        for old, new in zip(before.stateful, now.stateful, strict=True):
            yield from _compare_operator(old, new, is_alone=len(kinds[1]) == 1, output_mode=output_mode)
    yield from _compare_watermarks(before, now)


def _compare_operator(
    old: RecordedStatefulOperator, new: RecordedStatefulOperator, *, is_alone: bool, output_mode: str
) -> Iterator[Change]:
    """Compare one operator. `is_alone` if the query has no other."""
    changes = [
        *_compare_keys(old, new),
        *_compare_values(old, new),
        *_compare_join(old, new),
        *_compare_processor(old, new),
    ]
    is_update = is_alone and output_mode == "update"
    if is_update and _is_distinct(old) and _is_distinct(new):
        yield from _compare_distinct(old, new, changes)
        return
    yield from changes
    before, now = locate_lines(old.input, old.branches, new.input, new.branches)
    added, removed = subtract(now, before), subtract(before, now)
    if before != now and not (added or removed) and bool(old.branches) != bool(new.branches):
        # An older version recorded of the branches of a union only the order of their lines.
        added, removed = now, before
    if changes:
        # They follow from another key or condition.
        added, removed = (
            tuple(line for line in lines if not line.startswith((_DERIVED, "Expand:")))
            for lines in (added, removed)
        )
    if added and not removed and not changes and _filters_keys(new, added, is_update=is_update):
        yield KeyFilterAdded(new.kind, added)
    elif added or removed:
        yield StateInputChanged(new.kind, added, removed)


def _is_distinct(operator: RecordedStatefulOperator) -> bool:
    """Return whether an operator stores keys and nothing else, as `SELECT DISTINCT` does."""
    return operator.kind == "aggregation" and not operator.values


def _compare_distinct(
    old: RecordedStatefulOperator, new: RecordedStatefulOperator, changes: Sequence[Change]
) -> Iterator[Change]:
    """Compare groupings without aggregates in update mode, whose results do not come from the state."""
    refused = [change for change in changes if isinstance(change, KeyChanged) and change.is_refused]
    yield from refused
    inputs = locate_lines(old.input, old.branches, new.input, new.branches)
    before, now = (*_texts(old.keys), *inputs[0]), (*_texts(new.keys), *inputs[1])
    if before != now and not refused:
        yield DistinctRowsChanged(subtract(now, before), subtract(before, now))


def _filters_keys(operator: RecordedStatefulOperator, lines: Sequence[str], *, is_update: bool) -> bool:
    """Return whether new lines of the input keep or drop whole keys, and no result of a dropped key follows.

    Such a result follows in append and complete mode, where an aggregation writes state of keys without new rows.
    """
    keys = set(_texts(operator.keys))
    writes_new_only = (
        is_update if operator.kind == "aggregation" else operator.kind.startswith("deduplication")
    )
    return writes_new_only and all(
        line.startswith("filter ")
        and (columns := set(_COLUMN.findall(line)))
        and columns <= keys
        and not any(word in line for word in _VARYING)
        for line in lines
    )


def _compare_keys(old: RecordedStatefulOperator, new: RecordedStatefulOperator) -> Iterator[Change]:
    if (old.keys, old.right_keys) == (new.keys, new.right_keys):
        return
    pairs = [(old.keys, new.keys), (old.right_keys, new.right_keys)]
    texts = [[tuple(term.text for term in terms) for terms in pair] for pair in pairs]
    is_refused = any(not accepts_schema(*pair) for pair in pairs)
    if not is_refused and all(pair[0] == pair[1] for pair in texts):
        return
    windows = [
        (before, after)
        for before, after in zip(*texts[0], strict=False)
        if before != after and before.startswith(_WINDOWS) and after.startswith(_WINDOWS)
    ]
    others = sum(before != after for before, after in zip(*texts[0], strict=False)) - len(windows)
    if windows and not is_refused and not others:
        yield from (WindowChanged(new.kind, before, after) for before, after in windows)
        return
    before, after = (tuple(_phrase(term) for side in (0, 1) for term in pairs[side][n]) for n in (0, 1))
    yield KeyChanged(new.kind, before, after, is_refused)


def _compare_values(old: RecordedStatefulOperator, new: RecordedStatefulOperator) -> Iterator[Change]:
    """Compare what is stored for a key: aggregates, or the rows of a join's sides."""
    if old.join_type or new.join_type:
        for side, before, after in (
            ("left", old.values, new.values),
            ("right", old.right_values, new.right_values),
        ):
            is_refused = not accepts_schema(before, after)
            if is_refused or _texts(before) != _texts(after):
                yield StoredColumnsChanged(
                    side, tuple(map(_phrase, before)), tuple(map(_phrase, after)), is_refused
                )
        return
    is_refused = not _accepts_buffers(old.values, new.values)
    if is_refused or _texts(old.values) != _texts(new.values):
        yield AggregatesChanged(_texts(old.values), _texts(new.values), is_refused)


def _compare_join(old: RecordedStatefulOperator, new: RecordedStatefulOperator) -> Iterator[Change]:
    if old.join_type != new.join_type:
        is_refused = "Outer" in new.join_type
        yield JoinTypeChanged(old.join_type, new.join_type, is_refused)
    if old.condition != new.condition:
        if new.kind == "limit":
            yield LimitChanged(*(operator.condition[0] for operator in (old, new)))
            return
        added, removed = subtract(new.condition, old.condition), subtract(old.condition, new.condition)
        is_stricter = is_stricter_condition(added, removed)
        yield JoinConditionChanged(added, removed, new.join_type == "Inner", is_stricter)


def _compare_processor(old: RecordedStatefulOperator, new: RecordedStatefulOperator) -> Iterator[Change]:
    if old.state == new.state or not old.state:
        return
    changed = {
        name: f"{name}: {old.state.get(name)} -> {new.state.get(name)}"
        for name in dict.fromkeys((*old.state, *new.state))
        if old.state.get(name) != new.state.get(name)
    }
    # Each variable of transformWithState has a store, and Spark compares those that both have.
    is_accepted = "transformWithState" in new.kind and all(
        name.startswith("state ") and (name in old.state) != (name in new.state) for name in changed
    )
    yield ProcessorStateChanged(new.view or old.view, tuple(changed.values()), is_refused=not is_accepted)


def accepts_schema(stored: Sequence[PlanExpression], now: Sequence[PlanExpression]) -> bool:
    """Return whether Spark accepts the new columns for the stored ones.

    It compares number and types, not names, and refuses a column that may be null where the stored one may not.
    """
    return len(stored) == len(now) and all(
        former.type == term.type and (former.nullable or not term.nullable)
        for former, term in zip(stored, now, strict=True)
    )


def _accepts_buffers(stored: Sequence[PlanExpression], now: Sequence[PlanExpression]) -> bool:
    """Return whether Spark accepts the buffers of the new aggregates. A type that ends with `!` cannot be null."""
    fields = [
        [part for term in terms if term.type for part in term.type.split(", ")] for terms in (stored, now)
    ]
    return len(fields[0]) == len(fields[1]) and all(
        former == field or former == field.removesuffix("!") for former, field in zip(*fields, strict=True)
    )


def _compare_watermarks(before: RecordedPlan, now: RecordedPlan) -> Iterator[Change]:
    old = {watermark.column: watermark.delay for watermark in before.watermarks}
    new = {watermark.column: watermark.delay for watermark in now.watermarks}
    has_state = bool(now.stateful)
    for column in old.keys() & new.keys():
        if old[column] != new[column]:
            is_stored = any("within the watermark" in operator.kind for operator in now.stateful)
            yield WatermarkDelayChanged(column, old[column], new[column], is_stored)
    removed, added = sorted(old.keys() - new.keys()), sorted(new.keys() - old.keys())
    for former, column in zip(removed, added, strict=False):
        yield WatermarkColumnChanged(former, column, has_state)
    for column in removed[len(added) :]:
        yield WatermarkRemoved(column, has_state)
    for column in added[len(removed) :]:
        yield WatermarkAdded(column, has_state)


def locate_lines(
    old: Sequence[str], old_branches: Sequence[str], new: Sequence[str], new_branches: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the lines of two plans, each with the branch of a union in which it is, if both have branches.

    The same line in another branch filters other rows.
    """
    if not old_branches or not new_branches:
        return tuple(old), tuple(new)
    return _append_branches(old, old_branches), _append_branches(new, new_branches)


def _append_branches(lines: Sequence[str], branches: Sequence[str]) -> tuple[str, ...]:
    pairs = zip(lines, branches, strict=True)
    return tuple(f"{line} in {branch}" if branch else line for line, branch in pairs)


def subtract(lines: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Return the lines that are not among the others, each as often as it is missing there."""
    remaining = list(others)
    missing = []
    for line in lines:
        if line in remaining:
            remaining.remove(line)
        else:
            missing.append(line)
    return tuple(missing)


def _texts(terms: Sequence[PlanExpression]) -> tuple[str, ...]:
    return tuple(term.text for term in terms)


def _phrase(term: PlanExpression) -> str:
    return f"{term.text} ({term.type})"
