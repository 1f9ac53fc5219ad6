"""Judge changes of sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from millstream.plan.change_kinds.source_changes import (
    SourceAdded,
    SourceColumnsChanged,
    SourceGrew,
    SourceMoved,
    SourceOptionChanged,
    SourcePlacesChanged,
    SourceRecreated,
    SourceRemoved,
    SourceRenamed,
    SourceReplaced,
    SourcesReordered,
    StaticSourceChanged,
)
from millstream.plan.verdict import Judgement, RestartVerdict, judge_without_plan
from millstream.plan.words import FRESH, join_words, name_kind

if TYPE_CHECKING:
    from millstream.plan.change_kinds.source_changes import SourceChange


def judge_source(change: SourceChange) -> Judgement:
    """Return what a change of a source means for the checkpoint."""
    kind = name_kind(change)
    match change:
        case SourceAdded(source):
            return Judgement(
                RestartVerdict.START_AFRESH,
                kind,
                f"source '{source}' is new",
                "Spark stores offsets by the position of the source, and refuses a different number of sources",
                "nothing is written",
                FRESH,
                f"sources.{source}",
            )
        case SourceRemoved(source, is_refused):
            return Judgement(
                RestartVerdict.START_AFRESH if is_refused else RestartVerdict.SILENTLY_WRONG,
                kind,
                f"source '{source}' is no longer read",
                "Spark stores offsets by the position of the source, and refuses a different number of sources"
                if is_refused
                else "another source is read at its place in the plan, and continues from its offsets",
                "nothing is written" if is_refused else "rows are missing or repeated",
                FRESH,
                "sources",
            )
        case SourcePlacesChanged(before, now):
            return Judgement(
                RestartVerdict.START_AFRESH,
                kind,
                f"the plan reads {join_words(now)}; the checkpoint has offsets of {join_words(before)}",
                "Spark stores an offset for each place at which the plan reads a source, and refuses a different "
                "number of places",
                "nothing is written",
                FRESH,
                "views",
            )
        case SourcesReordered(before, now, is_one_kind):
            return Judgement(
                RestartVerdict.SILENTLY_WRONG if is_one_kind else RestartVerdict.START_AFRESH,
                kind,
                f"the sources are read in the order {join_words(now)}; the checkpoint has {join_words(before)}",
                "Spark stores offsets by the position of the source, so each source would continue from the "
                "offsets of another one",
                "rows are missing or repeated" if is_one_kind else "nothing is written",
                f"keep the order {join_words(before)} in the view, or {FRESH}",
                "views",
            )
        case SourceRenamed(before, source):
            return Judgement(
                RestartVerdict.CONTINUES,
                kind,
                f"source '{before}' was renamed to '{source}'",
                "Spark does not use the names of sources",
                place=f"sources.{source}",
            )
        case SourceReplaced(source, before, now):
            return Judgement(
                RestartVerdict.START_AFRESH,
                kind,
                f"source '{source}' is of kind {now}; it was {before}",
                f"Spark cannot read the offsets of {before} as offsets of {now}",
                "nothing is written",
                FRESH,
                f"sources.{source}",
            )
        case SourceMoved(source, field, before, now):
            return Judgement(
                RestartVerdict.SILENTLY_WRONG,
                kind,
                f"{field} of source '{source}' is {now}; it was {before}",
                "the offsets in the checkpoint belong to the former place; Spark does not notice this, or fails "
                "when it looks for records or files that it has planned",
                "records of the new place may be skipped",
                f"move the data to {before}, or {FRESH}",
                f"sources.{source}.{field}",
            )
        case SourceGrew(source, field, added):
            return Judgement(
                RestartVerdict.CONTINUES_WITH_NOTE,
                kind,
                f"source '{source}' also reads {join_words(added)}",
                "Spark reads new topics and folders from the beginning, whatever the source's starting offsets are",
                "the first batches contain all their existing records",
                place=f"sources.{source}.{field}",
            )
        case SourceRecreated(source, what):
            return Judgement(
                RestartVerdict.SILENTLY_WRONG,
                kind,
                f"{what} of source '{source}' was deleted and created again",
                "the offsets in the checkpoint belong to the deleted one, and Spark skips all records before "
                "these offsets",
                "records are missing",
                FRESH,
                f"sources.{source}",
            )
        case SourceOptionChanged():
            return _judge_option(change, kind)
        case SourceColumnsChanged(source, added, removed, retyped):
            parts = [
                *(f"column '{column}' is new" for column in added),
                *(f"column '{column}' is gone" for column in removed),
                *(f"type of {column}" for column in retyped),
            ]
            return Judgement(
                RestartVerdict.CONTINUES_WITH_NOTE,
                kind,
                f"schema of source '{source}': {', '.join(parts)}",
                "Spark does not store the schema of a source; records that it has not read yet are decoded with "
                "the new schema",
                "if the change affects the state or the sinks, a separate change says so",
                place=f"sources.{source}.schema",
            )
        case StaticSourceChanged(source, has_state):
            return Judgement(
                RestartVerdict.CONTINUES_WITH_NOTE,
                kind,
                f"static source '{source}' is another one or has other options",
                "Spark stores nothing about static sources; each batch reads them",
                "new rows are joined with the new table"
                + (", and groups that are open with both" if has_state else ""),
                place=f"sources.{source}",
            )
        case _:
            assert_never(change)


def _judge_option(change: SourceOptionChanged, kind: str) -> Judgement:
    """Return what another option of a source means."""
    what = f"{change.option} of source '{change.source}' is {change.now}; it was {change.before}"
    place = f"sources.{change.source}.{change.option}"
    match change.effect:
        case "start":
            return Judgement(
                RestartVerdict.CONTINUES_WITH_NOTE,
                kind,
                what,
                "Spark continues from the offsets in the checkpoint; the option is used only with a new checkpoint",
                place=place,
            )
        case "next_start":
            spark, sinks = _describe_next_start(change.option, change.now)
            return Judgement(
                RestartVerdict.CONTINUES_WITH_NOTE,
                kind,
                what,
                f"from the next start on, {spark}",
                sinks,
                place=place,
            )
        case "rate":
            return Judgement(
                RestartVerdict.CONTINUES,
                kind,
                what,
                "the next batch is planned with the new value",
                place=place,
            )
        case "place":
            return Judgement(
                RestartVerdict.CONTINUES_WITH_NOTE,
                kind,
                what,
                "the offsets in the checkpoint are valid only if these are the same servers with the same data",
                "otherwise records are missing or repeated",
                "make sure that the data is the same",
                place,
            )
        case "plan":
            return judge_without_plan(kind, f"{change.option} of source '{change.source}' has changed", place)
        case "rows":
            if change.has_state is None:
                return judge_without_plan(kind, what, place)
            return Judgement(
                RestartVerdict.SILENTLY_WRONG if change.has_state else RestartVerdict.CONTINUES_WITH_NOTE,
                kind,
                what,
                "records that Spark has not read yet are read with the new value",
                "the state contains rows that were read with the former value"
                if change.has_state
                else "rows written before stay as they are",
                FRESH if change.has_state else "",
                place,
            )
        case _:
            assert_never(change.effect)


def _describe_next_start(option: str, now: str) -> tuple[str, str]:
    """Return what Spark does with an option that each start uses, and what the sinks then contain."""
    match option, now:
        case "fail_on_data_loss", "False":
            return (
                "Spark skips records that were deleted before it read them, and does not end the query",
                "rows of such records are missing",
            )
        case "fail_on_data_loss", _:
            return "Spark ends the query if records were deleted before it read them", ""
        case "max_file_age", "None":
            return (
                "Spark reads files of any age, also those that it has left out because of their age",
                "the first batches contain the rows of such files",
            )
        case "max_file_age", _:
            return (
                f"Spark never reads a file that is more than {now} older than the newest file that it has read, even "
                "if the file is waiting; it reads files that only the former value left out",
                "rows of files that are older are missing",
            )
        case "file_name_only", "True":
            return (
                "Spark never reads a file with the name of one that it has read, whatever its folder",
                "rows of such files are missing",
            )
        case "file_name_only", _:
            return (
                "Spark reads a file again that was moved after it was read, and files that it has left out because "
                "of their names",
                "rows of moved files are repeated",
            )
        case _:
            return "Spark uses the new consumer group; it continues from the offsets in the checkpoint", ""
