"""Judge changes of operators with state and of watermarks."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from millstream.plan.change_kinds.state_changes import (
    AggregatesChanged,
    DistinctRowsChanged,
    JoinConditionChanged,
    JoinTypeChanged,
    KeyChanged,
    KeyFilterAdded,
    LimitChanged,
    ProcessorCodeChanged,
    ProcessorStateChanged,
    StatefulOperatorsChanged,
    StateFunctionChanged,
    StateInputChanged,
    StoredColumnsChanged,
    WatermarkAdded,
    WatermarkColumnChanged,
    WatermarkDelayChanged,
    WatermarkRemoved,
    WindowChanged,
)
from millstream.plan.verdict import Judgement, RestartVerdict
from millstream.plan.words import FRESH, join_words, name_kind, phrase_difference

if TYPE_CHECKING:
    from millstream.plan.change_kinds.state_changes import StateChange

_MIXED = "results mix rows of both versions, without an error"
_NOTHING = "nothing is written"


def judge_state(change: StateChange) -> Judgement:
    """Return what a change of an operator with state, or of a watermark, means for the checkpoint."""
    kind = name_kind(change)
    match change:
        case WatermarkDelayChanged(column, before, now, is_stored=True):
            return _judge_as_wrong(
                kind,
                f"the watermark on {column} waits {now}; it was {before}",
                "the deduplication has stored for each key when it is removed, by the former delay",
                "a row that is repeated later is dropped or kept by the former delay",
                "sources",
            )
        case WatermarkDelayChanged(column, before, now):
            return Judgement(
                RestartVerdict.CONTINUES_WITH_NOTE,
                kind,
                f"the watermark on {column} waits {now}; it was {before}",
                "the watermark continues from the checkpoint and never goes back; the new delay applies to new "
                "rows",
                "windows that are final stay final",
                place="sources",
            )
        case WatermarkColumnChanged(before, now, has_state):
            return Judgement(
                RestartVerdict.SILENTLY_WRONG if has_state else RestartVerdict.CONTINUES_WITH_NOTE,
                kind,
                f"the watermark is on {now}; it was on {before}",
                "the watermark continues from the checkpoint with the value of the former event time",
                "rows count as late by another clock" if has_state else "",
                FRESH if has_state else "",
                "sources",
            )
        case WatermarkAdded(column, has_state):
            return Judgement(
                RestartVerdict.CONTINUES_WITH_NOTE,
                kind,
                f"there is a new watermark on {column}",
                "from now on, rows that are older than the watermark are dropped"
                + (", and older state is removed" if has_state else ""),
                place="sources",
            )
        case WatermarkRemoved(column, has_state):
            return Judgement(
                RestartVerdict.CONTINUES_WITH_NOTE,
                kind,
                f"there is no watermark on {column} any more",
                "late rows are not dropped any more" + (", and state is never removed" if has_state else ""),
                place="sources",
            )
        case StatefulOperatorsChanged(before, now):
            return _refuse(
                kind,
                f"the operators with state are {join_words(now)}; the checkpoint has {join_words(before)}",
                "Spark compares the operators with the state's metadata and refuses the checkpoint",
            )
        case KeyChanged(operator, before, now, is_refused):
            what = f"the key of the {operator} is {join_words(now)}; it was {join_words(before)}"
            if is_refused:
                return _refuse(
                    kind,
                    what,
                    "Spark compares number and types of the key's parts and refuses the checkpoint",
                )
            return _judge_as_wrong(
                kind,
                what,
                "Spark compares only number and types of the key's parts, which are the same",
                "rows meet the state of other keys, and former keys are never updated again",
            )
        case WindowChanged(operator, before, now):
            return _judge_as_wrong(
                kind,
                f"the {operator} is over {now}; it was over {before}",
                "the type of a window does not change with its length, so Spark accepts the state",
                "former windows stay in the state next to new ones, and new windows lack the rows read before",
            )
        case AggregatesChanged(before, now, is_refused):
            what = f"the aggregates are {join_words(now)}; they were {join_words(before)}"
            if is_refused:
                return _refuse(
                    kind, what, "Spark compares number and types of the buffers and refuses the checkpoint"
                )
            return _judge_as_wrong(
                kind,
                what,
                "Spark compares only number and types of the buffers, which are the same",
                "a buffer of one aggregate continues as that of another",
            )
        case StoredColumnsChanged(side, before, now, is_refused):
            what = f"the {side} side of the join stores {join_words(now)}; it stored {join_words(before)}"
            if is_refused:
                return _refuse(
                    kind,
                    what,
                    "Spark stores only columns that are used above the join, and refuses other numbers and types",
                )
            return _judge_as_wrong(
                kind,
                what,
                "Spark compares only number and types of the columns",
                "stored rows change meaning",
            )
        case JoinTypeChanged(before, now, is_refused):
            what = f"the join is {now}; it was {before}"
            if is_refused:
                return _refuse(kind, what, "Spark refuses the stored rows, which do not say if they matched")
            if now == "Inner" and before != "LeftSemi":
                return Judgement(
                    RestartVerdict.CONTINUES_WITH_NOTE,
                    kind,
                    what,
                    "Spark accepts the state, because an inner join needs nothing that an outer join has not "
                    "stored",
                    "rows that were already written without a match stay in the sinks",
                    place="views",
                )
            if before == "LeftSemi":
                return _judge_as_wrong(
                    kind,
                    what,
                    "Spark accepts the state of the former join, which has no row that matched when it arrived",
                    "later pairs of these rows are missing, without an error",
                )
            return _judge_as_wrong(kind, what, "Spark accepts the state of the former join", _MIXED)
        case JoinConditionChanged():
            return _judge_condition(change, kind)
        case LimitChanged(before, now):
            return _judge_as_wrong(
                kind, f"the limit is {now}; it was {before}", "Spark counts on from the stored number", _MIXED
            )
        case StateInputChanged(operator, added, removed):
            return _judge_as_wrong(
                kind,
                f"other rows reach the {operator}: {phrase_difference(added, removed)}",
                "Spark does not compare what is below an operator with state",
                _MIXED,
            )
        case KeyFilterAdded(operator, filters):
            return Judgement(
                RestartVerdict.CONTINUES_WITH_NOTE,
                kind,
                f"fewer keys reach the {operator}: {phrase_difference(filters, ())}",
                "the filter uses only the key, so the state of the remaining keys is complete",
                "keys that the filter excludes stay in the state, and their last rows stay in the sinks",
                place="views",
            )
        case DistinctRowsChanged(added, removed):
            return Judgement(
                RestartVerdict.CONTINUES_WITH_NOTE,
                kind,
                f"other rows are grouped: {phrase_difference(added, removed)}",
                "update mode writes each key of a batch; without aggregates nothing of it comes from the state",
                "rows written before stay as they are",
                place="views",
            )
        case StateFunctionChanged(view, operator):
            return Judgement(
                RestartVerdict.CANNOT_TELL,
                kind,
                f"the Python code of view '{view}', whose rows reach the {operator}, has changed",
                "Spark does not compare code",
                "if the new code returns other values for a row, results mix values of the old and the new code, "
                "without an error",
                "if the new code returns the same values, start the query; if not, " + FRESH,
                f"views.{view}",
            )
        case ProcessorStateChanged(view, what, is_refused):
            text = f"the processor of view '{view}' has other state: {'; '.join(what)}"
            if is_refused:
                return _refuse(kind, text, "Spark compares state variables and modes with the checkpoint")
            return Judgement(
                RestartVerdict.CANNOT_TELL,
                kind,
                text,
                "Spark accepts the checkpoint; a new variable is empty for existing keys",
                "the new code may need values that the former code did not store",
                "if the new code does not need them, start the query; if not, " + FRESH,
                f"views.{view}",
            )
        case ProcessorCodeChanged(view):
            return Judgement(
                RestartVerdict.CANNOT_TELL,
                kind,
                f"the code of the processor of view '{view}' has changed",
                "Spark does not compare code; the new code reads values that the former code stored",
                "each key continues with its stored value, which the new code might have computed differently",
                "if the new code can use the former values, start the query; if not, " + FRESH,
                f"views.{view}",
            )
        case _:
            assert_never(change)


def _judge_condition(change: JoinConditionChanged, kind: str) -> Judgement:
    """Return what another condition of a join means. A stricter one is right for an inner join."""
    what = f"the join has another condition: {phrase_difference(change.added, change.removed)}"
    if change.is_inner and change.is_stricter:
        return Judgement(
            RestartVerdict.CONTINUES_WITH_NOTE,
            kind,
            what,
            "stored rows are matched by the new, stricter condition",
            "pairs that were already written stay in the sinks",
        )
    return _judge_as_wrong(
        kind,
        what,
        "Spark accepts the state; rows that the former condition removed from it are gone",
        "pairs are missing, or rows that were written as unmatched match later",
    )


def _refuse(kind: str, what: str, spark: str) -> Judgement:
    return Judgement(RestartVerdict.START_AFRESH, kind, what, spark, _NOTHING, FRESH, "views")


def _judge_as_wrong(kind: str, what: str, spark: str, sinks: str, place: str = "views") -> Judgement:
    return Judgement(RestartVerdict.SILENTLY_WRONG, kind, what, spark, sinks, FRESH, place)
