"""A key of a sink that several rows of one batch have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.dataflow import Aggregate, Deduplicate, Join
from millstream.analysis.facts import Code, Facts
from millstream.analysis.lineage import grouping, leaves, made_of, outputs
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import Operator, PlannedQuery
    from millstream.diagnostics.finding import Finding, Span

CODE = Code.of(__name__)
_ONE_ROW_EACH = frozenset(
    {"explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer"}
)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """The operator that decides how many rows of a key a batch brings, against the key of each sink.

    A key without the window that a query groups by is repeated with the first batch that spans two windows. What
    else it groups by may depend on the key, as a name does on an id, and is not judged.
    """
    deciding = _deciding(query.root)
    if facts is None or deciding is None or query.output_mode is OutputMode.COMPLETE:
        return
    for number, sink in enumerate(query.sinks):
        positions = [_position(query.root, name) for name in sink.key]
        known = [made_of(query.root, at, deciding) for at in positions if at is not None]
        if not sink.key or len(known) < len(sink.key) or None in known:
            continue
        held = frozenset(at for some in known for at in some or ())
        span = facts.places.value("queries", query.name, "to", number, "sink", "merge_on")
        if isinstance(deciding, Aggregate):
            yield from _of_time(query, deciding, held, span, sink.key)
        elif isinstance(deciding, Deduplicate):
            yield from _of_deduplication(query, deciding, held, span, sink.key)
        else:
            yield from _of_rows(query, deciding, held, span, sink.key)


def _of_time(
    query: PlannedQuery, aggregate: Aggregate, held: frozenset[int], span: Span, key: tuple[str, ...]
) -> Iterator[Finding]:
    """Every time that is grouped by must be in the key, or a part of it such as a window's start."""
    made = outputs(aggregate) or ()
    below = aggregate.inputs[0]
    in_key = {one for at in held if at < len(made) for one in leaves(below, made[at])}
    for one, column in zip(grouping(aggregate), aggregate.keys, strict=False):
        read = set(leaves(below, one))
        windowed = column.type.startswith("struct<start:timestamp")
        # A time as it came may go with an id; one that was cut to the hour or day is a window by another name.
        timed = one.column is None and any(below.columns[at].delay is not None for at in read)
        if not (windowed or timed) or read & in_key:
            continue
        over = f" over '{aggregate.window.column}'" if aggregate.window else ""
        what = f"the window{over}" if windowed else f"the time '{column.name}'"
        missing = "window.start" if windowed else f"'{column.name}'"
        tell = CODE.error if windowed else CODE.warning
        yield tell(
            f"query '{query.name}' groups by {what}, which is not in merge_on",
            span,
            why=f"a batch that brings two times of one ({', '.join(key)}) has that key twice, and is refused",
            fix=f"select {missing} in the view, and add it to merge_on",
            query=query.name,
        )


def _of_deduplication(
    query: PlannedQuery, deduplicate: Deduplicate, held: frozenset[int], span: Span, key: tuple[str, ...]
) -> Iterator[Finding]:
    """What tells rows apart before, and what tells them apart in the sink."""
    apart = {
        at for at, column in enumerate(deduplicate.columns) if any(column == one for one in deduplicate.keys)
    }
    if not apart or apart & held:
        return
    names = ", ".join(column.name for column in deduplicate.keys)
    yield CODE.warning(
        f"query '{query.name}' tells rows apart by ({names}), and its sink by ({', '.join(key)})",
        span,
        why=f"two rows of one batch may differ in ({names}) and have the same key, and the batch is refused",
        fix=f"merge on ({names}), or group by ({', '.join(key)}) and take the latest row with max_by(…)",
        query=query.name,
    )


def _of_rows(
    query: PlannedQuery, generate: Operator, held: frozenset[int], span: Span, key: tuple[str, ...]
) -> Iterator[Finding]:
    """A row for each element, and nothing of the element in the key."""
    if any(at >= len(generate.inputs[0].columns) for at in held):
        return
    function = generate.expressions[0].text
    yield CODE.error(
        f"query '{query.name}' makes several rows of one by {function}, and merge_on holds nothing of the parts",
        span,
        why=f"the rows of two parts have the same ({', '.join(key)}), and the batch is refused",
        fix="add a column of the part to merge_on, or its place with posexplode",
        query=query.name,
    )


def _deciding(operator: Operator) -> Operator | None:
    """The topmost operator that decides how many rows there are of a key, where the way down to it is plain."""
    while True:
        if isinstance(operator, Aggregate | Deduplicate):
            return operator if operator.streaming else None
        if operator.node == "Generate" and operator.expressions:
            return operator if operator.expressions[0].function in _ONE_ROW_EACH else None
        if isinstance(operator, Join):
            streams = [one for one in operator.inputs if one.streaming]
            if len(streams) != 1:
                return None
            operator = streams[0]
        elif len(operator.inputs) == 1 and (outputs(operator) or operator.node in _PLAIN):
            operator = operator.inputs[0]
        else:
            return None


_PLAIN = frozenset({"Filter", "EventTimeWatermark"})


def _position(root: Operator, name: str) -> int | None:
    low = [column.name.lower() for column in root.columns]
    return low.index(name.lower()) if name.lower() in low else None
