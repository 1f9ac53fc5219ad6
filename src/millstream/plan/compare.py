"""Compare a query with the record of its checkpoint, and list the changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from millstream.plan.change_kinds.state_changes import ProcessorCodeChanged, StateFunctionChanged
from millstream.plan.compare_sources import compare_sources
from millstream.plan.compare_state import compare_state, locate_lines, subtract
from millstream.plan.zone_dependence import can_depend_on_zone
from millstream.spark.recorded_settings import SPARK_DEFAULTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.checkpoint.metadata import QueryMetadata
    from millstream.checkpoint.recorded_plan import RecordedPlan
    from millstream.plan.changes import Change

PARTITIONS = "spark.sql.shuffle.partitions"
_TIME_ZONE = "spark.sql.session.timeZone"
# Settings that change how a batch runs, not its rows.
_HARMLESS_SETTINGS = (
    "spark.sql.adaptive.enabled",
    "spark.sql.streaming.checkpointFileManagerClass",
    "spark.sql.streaming.noDataMicroBatches.enabled",
)


def compare_records(before: QueryMetadata, now: QueryMetadata) -> list[Change]:
    """List the changes from the record of a checkpoint to the query as it is now.

    If `now` has no plan, because Spark was not started, views are compared by their text.
    """
    return [
        *compare_sources(before, now),
        *_compare_plans(before, now),
        *_compare_query(before, now),
        *_compare_sinks(before, now),
        *_compare_settings(before, now),
    ]


def _compare_plans(before: QueryMetadata, now: QueryMetadata) -> Iterator[Change]:
    if now.plan is None:
        yield from _compare_views(before, now)
        return
    if before.plan is None:
        shapes = [tuple((item.kind, item.shape) for item in record.operators) for record in (before, now)]
        if shapes[0] != shapes[1]:
            yield PlanUnknown(
                "the checkpoint was written by an older version of Millstream, which "
                "recorded less about the query"
            )
        return
    if now.plan.has_clock and not before.plan.has_clock and _is_declared_alike(before, now):
        # An older version wrote the time of its start into the plan, so that the same query has another one.
        return
    yield from compare_state(before.plan, now.plan, now.output_mode)
    if before.plan.fingerprint != now.plan.fingerprint:
        yield from _compare_output(before.plan, now)
    yield from _compare_functions(before, now)


def _is_declared_alike(before: QueryMetadata, now: QueryMetadata) -> bool:
    """Return whether two records have the same views, parameters, expectations and sources."""
    return (before.views, before.params, before.inputs, before.expectations or {}) == (
        now.views,
        now.params,
        now.inputs,
        now.expectations or {},
    )


def _compare_output(old: RecordedPlan, now: QueryMetadata) -> Iterator[Change]:
    """Compare what is above all state, and the columns for the sinks."""
    new = now.plan
    assert new is not None, "the caller has a plan"
    lines = locate_lines(old.output, old.output_branches, new.output, new.output_branches)
    added, removed = subtract(lines[1], lines[0]), subtract(lines[0], lines[1])
    if added or removed:
        yield RowsChanged(added, removed, now.output_mode, bool(new.stateful))
    before, after = ({term.name: (term.text, term.type) for term in plan.columns} for plan in (old, new))
    if before != after:
        yield ColumnsChanged(
            tuple(name for name in after if name not in before),
            tuple(name for name in before if name not in after),
            tuple(name for name in after if name in before and before[name] != after[name]),
        )


def _compare_functions(before: QueryMetadata, now: QueryMetadata) -> Iterator[Change]:
    """Compare the code of Python views. A function that only builds a DataFrame is in the plan already."""
    assert now.plan is not None, "the caller has a plan"
    processors = {operator.view for operator in now.plan.stateful if operator.view}
    below = [operator for operator in now.plan.stateful if operator.functions]
    # A view that is new may be one of these under another name. If none of them is gone, the plan shows what is new.
    gone = [code for view, code in before.views.items() if view not in now.views and _is_python(code)]
    for view, code in now.views.items():
        former = [before.views[view]] if view in before.views else gone
        if not _is_python(code) or not former or code in former:
            continue
        if view in processors:
            yield ProcessorCodeChanged(view)
        elif below:
            yield StateFunctionChanged(view, below[0].kind)
        elif now.plan.functions:
            yield FunctionChanged(view)


def _is_python(code: str) -> bool:
    """Return whether a recorded view is the hash of a function."""
    return code.startswith("python ")


def _compare_views(before: QueryMetadata, now: QueryMetadata) -> Iterator[Change]:
    if not before.views and now.views:
        yield PlanUnknown(
            "the checkpoint was written by an older version of Millstream, which recorded "
            "less about the query"
        )
        return
    old, new = before.expectations, now.expectations or {}
    for view in dict.fromkeys((*before.views, *now.views)):
        has_other_rows = old is not None and old.get(view) != new.get(view)
        if has_other_rows or before.views.get(view) != now.views.get(view):
            yield ViewChanged(view)
    if before.params != now.params:
        yield ViewChanged("params")


def _compare_query(before: QueryMetadata, now: QueryMetadata) -> Iterator[Change]:
    plan = now.plan or before.plan
    has_state = bool(plan and plan.stateful)
    if before.output_mode != now.output_mode:
        has_eviction = bool(plan and plan.watermarks)
        yield OutputModeChanged(before.output_mode, now.output_mode, has_state, has_eviction)
    if before.trigger and before.trigger != now.trigger:
        yield TriggerChanged(before.trigger, now.trigger)


def _compare_sinks(before: QueryMetadata, now: QueryMetadata) -> Iterator[Change]:
    old, new = (
        {entry["key"].partition("/")[2]: entry.get("row_key") for entry in record.sinks}
        for record in (before, now)
    )
    yield from (SinkRemoved(key) for key in old if key not in new)
    yield from (SinkAdded(key) for key in new if key not in old)
    for key, row_key in new.items():
        former_key = old.get(key)
        # Older versions did not record it.
        if row_key is not None and former_key is not None and row_key != former_key:
            yield SinkKeyChanged(key, former_key, row_key)


def _compare_settings(before: QueryMetadata, now: QueryMetadata) -> Iterator[Change]:
    plan = now.plan or before.plan
    has_state = None if plan is None else bool(plan.stateful)
    for setting, value in now.pinned.items():
        recorded = before.pinned.get(setting, value)
        if recorded == value:
            continue
        if setting == PARTITIONS:
            if has_state is not False:
                yield ShufflePartitionsChanged(recorded, value, is_certain=bool(has_state))
        else:
            yield PinnedSettingChanged(setting, recorded, value)
    for setting in dict.fromkeys((*before.unpinned, *now.unpinned)):
        # A record has only the settings that something has set.
        default = SPARK_DEFAULTS.get(setting)
        old, new = (record.unpinned.get(setting, default) for record in (before, now))
        if old is None or new is None or old == new or setting in _HARMLESS_SETTINGS:
            continue
        affects_state = has_state
        if plan is not None and setting == _TIME_ZONE:
            affects_state = can_depend_on_zone(plan, now.inputs)
        yield SettingChanged(setting, old, new, affects_state)
    for what, value in now.versions.items():
        recorded = before.versions.get(what, value)
        if recorded != value and what in ("spark", "millstream"):
            yield VersionChanged(what, recorded, value)
