"""Judge changes of what a query writes and of its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from millstream.plan.change_kinds.query_changes import (
    ColumnsChanged,
    FunctionChanged,
    OutputModeChanged,
    PinnedSettingChanged,
    PlanUnknown,
    RowsChanged,
    SettingChanged,
    ShufflePartitionsChanged,
    SinkAdded,
    SinkKeyChanged,
    SinkRemoved,
    TriggerChanged,
    VersionChanged,
    ViewChanged,
)
from millstream.plan.verdict import Judgement, RestartVerdict, judge_without_plan
from millstream.plan.words import FRESH, name_kind, phrase_difference

if TYPE_CHECKING:
    from millstream.plan.change_kinds.query_changes import QueryChange

_NEW_ROWS = "rows written before stay as they are"


def judge_query(change: QueryChange) -> Judgement:
    """Return what a change of a query's rows, sinks or settings means for the checkpoint."""
    kind = name_kind(change)
    match change:
        case FunctionChanged(view):
            return _note(
                kind,
                f"the Python code of view '{view}' has changed",
                "Spark does not compare code; new rows are computed by the new code",
                _NEW_ROWS,
                f"views.{view}",
            )
        case RowsChanged(added, removed, output_mode, has_state):
            what = f"other rows reach the sinks: {phrase_difference(added, removed)}"
            if has_state and output_mode == "append":
                return _note(
                    kind,
                    what,
                    "Spark applies the new conditions to results that it has not written yet",
                    _NEW_ROWS,
                    "views",
                )
            return _note(kind, what, "Spark applies the new conditions to new rows", _NEW_ROWS, "views")
        case ColumnsChanged(added, removed, changed):
            parts = [
                *(f"'{name}' is new" for name in added),
                *(f"'{name}' is gone" for name in removed),
                *(f"'{name}' is computed in another way" for name in changed),
            ]
            return _note(
                kind,
                f"columns of the sinks: {', '.join(parts)}",
                "Spark does not compare the columns of a result with those written before",
                "a sink with a fixed schema refuses other columns; " + _NEW_ROWS,
                "views",
            )
        case OutputModeChanged():
            return _judge_output_mode(change, kind)
        case TriggerChanged(before, now):
            return Judgement(
                RestartVerdict.CONTINUES,
                kind,
                f"the trigger is {now}; it was {before}",
                "the next batch starts as the new trigger says",
                place="queries",
            )
        case SinkAdded(sink):
            return _note(
                kind,
                f"sink {sink} is new",
                "Spark does not know the sinks",
                "it receives rows from the next batch on; fill the past with 'millstream backfill'",
                "queries",
            )
        case SinkRemoved(sink):
            return _note(
                kind,
                f"sink {sink} is no longer written",
                "Spark does not know the sinks",
                "it keeps the rows that it has",
                "queries",
            )
        case SinkKeyChanged(sink, before, now):
            return _note(
                kind,
                f"the key of sink {sink} is {now or 'none'}; it was {before or 'none'}",
                "Spark does not know the sinks",
                "rows written before stay as they are, so several of them may have the same new key, and rows of the "
                "former key are no longer replaced; build the table again with 'millstream backfill --into'",
                "queries",
            )
        case ShufflePartitionsChanged(before, now, is_certain):
            if not is_certain:
                return judge_without_plan(
                    kind, f"spark.sql.shuffle.partitions is {now}; it was {before}", "spark"
                )
            return Judgement(
                RestartVerdict.REPARTITION,
                kind,
                f"spark.sql.shuffle.partitions is {now}; the state has {before}",
                f"Spark uses {before} as long as the checkpoint exists, and ignores the new number",
                "the rows are correct",
                f"leave it at {before}, or {FRESH}",
                "spark",
            )
        case PinnedSettingChanged(setting, before, now):
            return _note(
                kind,
                f"{setting} is {now}; it was {before}",
                f"Spark keeps {before} for the life of the checkpoint and ignores the new value",
                "the rows are correct",
                "spark",
            )
        case SettingChanged(setting, before, now, affects_state):
            what = f"{setting} is {now}; it was {before}"
            if affects_state is None:
                return judge_without_plan(kind, what, "spark")
            if affects_state:
                return Judgement(
                    RestartVerdict.SILENTLY_WRONG,
                    kind,
                    what,
                    "Spark does not keep this setting, and computes keys and values with the new one",
                    "the state has values computed with the former one",
                    f"set it back, or {FRESH}",
                    "spark",
                )
            return _note(kind, what, "new rows are computed with the new value", _NEW_ROWS, "spark")
        case VersionChanged(what, before, now):
            return _note(
                kind,
                f"{what} is {now}; the checkpoint was last used by {before}",
                "newer versions read the checkpoints of older ones" if what == "spark" else "",
                "",
                "",
            )
        case ViewChanged(view):
            return judge_without_plan(
                kind,
                f"view '{view}' has changed" if view != "params" else "parameters of the SQL have changed",
                f"views.{view}" if view != "params" else "params",
            )
        case PlanUnknown(reason):
            return Judgement(
                RestartVerdict.CANNOT_TELL,
                kind,
                reason,
                "Spark compares only the number and the types of the columns in the state",
                "unknown",
                "run the unchanged pipeline once, so that its record is written, and compare again",
            )
        case _:
            assert_never(change)


def _judge_output_mode(change: OutputModeChanged, kind: str) -> Judgement:
    what = f"the output mode is {change.now}; it was {change.before}"
    if change.now == "complete" and change.has_eviction and change.has_state:
        return Judgement(
            RestartVerdict.SILENTLY_WRONG,
            kind,
            what,
            "the watermark has removed groups from the state, and complete mode writes only the remaining ones",
            "groups are missing from the result",
            FRESH,
            "queries",
        )
    if change.now == "append" and change.has_state:
        return _note(
            kind,
            what,
            "open groups are written once more when the watermark passes them",
            "a sink that does not merge contains such groups twice",
            "queries",
        )
    return _note(
        kind, what, "Spark accepts the state", "rows from now on are those of the new mode", "queries"
    )


def _note(kind: str, what: str, spark: str, sinks: str, place: str) -> Judgement:
    return Judgement(RestartVerdict.CONTINUES_WITH_NOTE, kind, what, spark, sinks, place=place)
