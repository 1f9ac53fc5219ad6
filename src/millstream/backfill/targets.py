"""Select the sinks of a backfill, and refuse those that it cannot write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.backfill.event_time import delays_output
from millstream.diagnostics.failure import InvalidInput
from millstream.engine.sink_keys import sink_keys
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.backfill.options import BackfillOptions
    from millstream.connectors.api.sink import Sink
    from millstream.connectors.api.values.event_time_range import EventTimeRange
    from millstream.pipeline.model import Pipeline


@dataclass(frozen=True)
class BackfillTarget:
    """One sink of a query that a backfill compares or writes. `key` is its name among the query's sinks."""

    query: str
    key: str
    sink: Sink
    mode: OutputMode
    side: bool
    """Whether the target is another table than the query's own."""

    @property
    def row_key(self) -> tuple[str, ...]:
        """The key by which a row replaces another; empty if rows have no key."""
        return self.sink.row_key if self.sink.replaces_table(self.mode) else ()


def select_targets(
    pipeline: Pipeline, query: str, options: BackfillOptions, time_range: EventTimeRange, notes: list[str]
) -> list[BackfillTarget]:
    """Return the selected sinks of a query. Raises `InvalidInput` for a sink that these options cannot write."""
    entries = pipeline.queries[query].to
    mode = pipeline.queries[query].output_mode
    if options.sink is not None and options.sink not in [entry.sink.kind for entry in entries]:
        known = ", ".join(entry.sink.kind for entry in entries)
        raise InvalidInput(f"query '{query}' has no sink '{options.sink}'", f"it writes to {known}")
    selected = []
    for key, entry in zip(sink_keys(pipeline, query), entries, strict=True):
        if options.sink is not None and entry.sink.kind != options.sink:
            continue
        if not entry.sink.stores_rows:
            notes.append(f"{query}: {entry.sink.describe()} stores no rows and is left out")
            continue
        sink = entry.sink if options.into is None else _side_target(pipeline, query, entry.sink, options.into)
        # If --into names the query's own target, it is not a side table.
        side = sink.identity() != entry.sink.identity()
        target_key = f"{sink.kind}:{options.into}" if side else key
        selected.append(BackfillTarget(query, target_key, sink, mode, side))
    if options.into is not None and len(selected) > 1:
        raise InvalidInput(
            f"query '{query}' has {len(selected)} sinks, but --into names one target",
            "choose one: --sink KIND",
        )
    for target in selected:
        if not options.compare:
            _require_writable(pipeline, target, options, time_range)
    return selected


def requires_stopped_query(
    planned: PlannedQuery, targets: Sequence[BackfillTarget], options: BackfillOptions
) -> bool:
    """Return whether the backfill may delete or overwrite a row that the query has just written.

    No query writes a batch again that its sink has, so the row would be lost. A query that delays its rows may run,
    because a backfill looks only at rows that are final, and so may one to whose sinks rows are only added.
    """
    changes_rows = options.writes and any(
        not target.side and (options.replace or target.row_key) for target in targets
    )
    return changes_rows and not delays_output(planned)


def list_other_writers(pipeline: Pipeline, query: str, sink: Sink) -> list[str]:
    """Return the other queries that write the target of a sink. A replacement would delete their rows."""
    return [name for name in pipeline.writers_of(sink.writes_to()) if name != query]


def _require_writable(
    pipeline: Pipeline, target: BackfillTarget, options: BackfillOptions, time_range: EventTimeRange
) -> None:
    """Raise `InvalidInput` for a sink that a backfill cannot write with these options."""
    sink, subject = target.sink, f"query '{target.query}': {target.sink.describe()}"
    fix = "choose another sink with --sink or another target with --into, or only compare: --compare"
    if not target.side and target.mode is OutputMode.COMPLETE:
        raise InvalidInput(f"each batch of the query replaces all rows of {subject}", fix)
    if not target.side and (conflict := sink.backfill_conflict(target.mode)):
        raise InvalidInput(f"{subject} cannot be backfilled: {conflict}", fix)
    if not options.replace:
        return
    if time_range.is_unbounded and options.past is None:
        raise InvalidInput(
            "--replace needs a range: without one, it would delete all rows whose input is no longer in the "
            "sources",
            "add --from and --to",
        )
    if others := list_other_writers(pipeline, target.query, sink):
        raise InvalidInput(
            f"{subject} cannot be replaced: query '{others[0]}' also writes it, and the rows of that query would "
            f"be deleted",
            "keep the rows: --past continue"
            if options.past is not None
            else "leave out --replace; missing rows are added without this option",
        )
    if sink.replacing_range(time_range) is None:
        raise InvalidInput(
            f"{subject} cannot delete rows by column {'.'.join(time_range.path)}",
            "leave out --replace; missing rows are added without this option",
        )


def _side_target(pipeline: Pipeline, query: str, sink: Sink, name: str) -> Sink:
    """Return the sink that writes to another target; a relative path starts at the spec's folder."""
    if "/" in name and "://" not in name:
        name = str(pipeline.folder / name)
    side_sink = sink.into(name)
    if side_sink is None:
        raise InvalidInput(
            f"query '{query}': {sink.describe()} cannot write to another target", "choose a sink: --sink KIND"
        )
    return side_sink
