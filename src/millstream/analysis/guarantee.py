"""The delivery guarantee of each sink: replayable sources, then a deterministic path, then what the sink keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.analysis.dataflow import Stability
from millstream.analysis.reach import Reach, touches, trusted
from millstream.analysis.wording import called, listed, place, quoted
from millstream.connectors.source import Replay, Replays
from millstream.pipeline.graph import Graph
from millstream.pipeline.model import OnError
from millstream.spec.guarantee import Guarantee

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.analysis.dataflow import PlannedQuery, Volatile
    from millstream.analysis.reach import Touch
    from millstream.diagnostics.finding import Span
    from millstream.pipeline.model import Pipeline, SinkEntry
    from millstream.pipeline.places import Places

# Of floating point: a repeated batch may add in another order.
_SUMS = frozenset(
    ["sum", "try_sum", "avg", "try_avg", "stddev", "stddev_pop", "variance", "var_pop", "variance_pop"]
)

# Of a trigger without batches.
_FLOWS = (
    "Spark writes rows one by one, and those since the last checkpoint again after a stop or a crash: "
    "no batch tells a replay"
)


@dataclass(frozen=True)
class Reason:
    """One sentence without a full stop, and the place that it speaks of, where that is known."""

    text: str
    span: Span | None = None

    def plain(self) -> dict[str, Any]:
        """`text`, `file` and `line`."""
        return {
            "text": self.text,
            "file": self.span.file if self.span else None,
            "line": self.span.line if self.span else None,
        }


@dataclass(frozen=True)
class Promise:
    """What one sink of one query keeps, and why.

    `reasons` go from the sources over the path to the sink. `conditions` must hold for it and nobody watches them.
    `weakest` is the link that keeps the promise from being stronger, or a condition of one that could not be
    stronger; None where there is neither. `planned` says that the path was read from a plan and not taken on
    trust. `number` is the sink's place in its query, from 0.
    """

    query: str
    sink: str
    guarantee: Guarantee
    reasons: tuple[str, ...]
    weakest: Reason | None = None
    conditions: tuple[Reason, ...] = ()
    planned: bool = False
    number: int = 0

    def plain(self) -> dict[str, Any]:
        """As the JSON of `check` has it."""
        return {
            "query": self.query,
            "sink": self.sink,
            "guarantee": str(self.guarantee),
            "reasons": list(self.reasons),
            "weakest": self.weakest.plain() if self.weakest else None,
            "conditions": [condition.plain() for condition in self.conditions],
            "planned": self.planned,
        }


def promises(
    pipeline: Pipeline, queries: Sequence[PlannedQuery] = (), places: Places | None = None
) -> list[Promise]:
    """The promise of every sink, in the spec's order.

    Without the plan of a query its views are taken to be deterministic, and the reasons say so. `places` gives
    the links their lines.
    """
    graph = Graph.of(pipeline)
    plans = {query.name: query for query in queries}
    return [
        promise(pipeline, graph, name, number, plans.get(name), places)
        for name, query in pipeline.queries.items()
        for number in range(len(query.to))
    ]


def promise(
    pipeline: Pipeline,
    graph: Graph,
    query: str,
    number: int,
    plan: PlannedQuery | None = None,
    places: Places | None = None,
) -> Promise:
    """What one sink of a query keeps."""
    entry = pipeline.queries[query].to[number]
    sources = _sources(pipeline, graph, query, places)
    sink = plan.sinks[number] if plan and number < len(plan.sinks) else None
    touched = touches(plan, sink) if plan else []
    path = _path(touched, several=len(pipeline.queries[query].to) > 1)
    believed = [_belief(cause) for cause in trusted(plan)] if plan else []
    kept, why = entry.sink.guarantee(pipeline.queries[query].output_mode)
    if pipeline.trigger(query).flows:
        kept, why = max(kept, Guarantee.AT_LEAST_ONCE, key=list(Guarantee).index), _FLOWS
    reach = touched[0].reach if touched else Reach.NOTHING
    worst = next((link for link in sources if link.replay.how is Replays.NONE), None)
    result = strongest(worst.replay.how if worst else Replays.EXACT, reach, kept)
    spoken = entry.sink.describe().replace(f"{pipeline.folder}/", "")
    held = Reason(f"{entry.sink.kind}: {why}", _sink_span(places, query, number, entry))
    conditions = (
        *(link.reason() for link in sources if link.replay.how is Replays.CONDITIONAL),
        *(belief for belief, counts in believed if counts),
    )
    unsure = [belief.text for belief, _ in believed]
    said = [reason.text for reason in path] or [*_certain(plan), *unsure]
    return Promise(
        query,
        spoken,
        result,
        (*_told(sources), *said, held.text, *_later(entry)),
        _weakest(result, worst, path, kept, held, conditions),
        conditions,
        plan is not None,
        number,
    )


def _later(entry: SinkEntry) -> list[str]:
    """What is said of a sink whose batches may come later. It keeps what it kept: each is delivered by its number."""
    if entry.on_error is OnError.DEAD_LETTER_ROWS:
        return ["a row that it refuses is set aside as a dead letter, and the rest of the batch is written"]
    if entry.on_error is not OnError.DEAD_LETTER:
        return []
    return ["a batch that it refuses is set aside, and delivered later with those after it, in order"]


def strongest(replays: Replays, reach: Reach, sink: Guarantee) -> Guarantee:
    """The strongest promise that three links can make together. No weaker link makes it stronger.

    A sink that commits the batch's number with the rows passes over a batch that runs again: whatever was
    committed first stands, unless state went on from other values. A sink that writes a key again needs the same
    keys.
    """
    order = list(Guarantee)
    bounds = [sink]
    if replays is Replays.NONE:
        bounds.append(Guarantee.AT_MOST_ONCE)
    if reach is Reach.STATE or (reach is Reach.ROWS and sink is not Guarantee.EXACTLY_ONCE):
        bounds.append(Guarantee.AT_LEAST_ONCE)
    return max(bounds, key=order.index)


@dataclass(frozen=True)
class _Link:
    """A source of a query, and what a repeated batch gets of it."""

    name: str
    kind: str
    static: bool
    replay: Replay
    span: Span | None

    def reason(self) -> Reason:
        """Its sentence."""
        what = f"{'static source' if self.static else 'source'} '{self.name}'"
        match self.replay.how:
            case Replays.CONDITIONAL:
                return Reason(f"{what}: {self.replay.text}", self.span)
            case Replays.NONE:
                return Reason(f"{what} ({self.kind}) {self.replay.text}", self.span)
            case _:
                return Reason(f"{what} {self.replay.text}", self.span)


def _sources(pipeline: Pipeline, graph: Graph, query: str, places: Places | None) -> list[_Link]:
    """The sources of a query, in the spec's order."""
    found = []
    for name in graph.upstream(query):
        entry = pipeline.sources[name]
        replay = entry.source.replay(static=entry.static)
        span = None
        if places:
            span = (
                places.value("sources", name, "source", replay.field)
                if replay.field
                else places.key("sources", name)
            )
        found.append(_Link(name, entry.source.kind, entry.static, replay, span))
    return found


def _told(sources: Sequence[_Link]) -> list[str]:
    """The sentences of sources; those that can be read again in the same way share one."""
    exact: dict[str, list[str]] = {}
    for link in sources:
        if link.replay.how is Replays.EXACT and not link.static:
            exact.setdefault(link.replay.text, []).append(link.name)
    shared = [
        f"source{'s' if len(names) > 1 else ''} {quoted(names)} {text}" for text, names in exact.items()
    ]
    others = [link for link in sources if link.replay.how is not Replays.EXACT or link.static]
    return shared + [link.reason().text for link in others]


def _certain(plan: PlannedQuery | None) -> list[str]:
    """What is said of a path on which nothing is unstable."""
    if plan is None:
        return ["its views are taken to be deterministic: without Spark no plan is read"]
    flowing = {
        cause.function
        for operator in plan.walk()
        for column in operator.columns
        for cause in column.volatile
        if cause.stability is Stability.BATCH
    }
    if flowing:
        names = listed([f"{name}()" for name in sorted(flowing)])
        return [f"{names} is kept with the batch; all else depends on the rows alone"]
    return [] if trusted(plan) else ["the same input gives the same rows: nothing in the plan is volatile"]


def _path(touched: Sequence[Touch], *, several: bool) -> list[Reason]:
    """The sentences about unstable expressions, the worst first, one an expression."""
    told: dict[tuple[str, str], Reason] = {}
    for touch in touched:
        cause = touch.cause
        where = f" ({place(cause.span)})" if cause.span else ""
        what = f"{_call(cause)}{where} gives another value when a batch runs again"
        match touch.reach:
            case Reach.STATE:
                keeper = called(touch.operator) if touch.operator else "an operator"
                text = f"{what} and reaches the state of {keeper}, which then differs from what was written"
            case Reach.ROWS if touch.column:
                text = f"{what} and decides by '{touch.column}' which row it is or where it goes"
            case Reach.ROWS:
                text = f"{what} and decides which rows there are"
            case _ if several:
                text = f"{what}: the sinks may disagree in '{touch.column}'"
            case _:
                text = f"{what}: '{touch.column}' is what its first attempt gave"
        told.setdefault((cause.function, place(cause.span)), Reason(text, cause.span))
    return list(told.values())


def _belief(cause: Volatile) -> tuple[Reason, bool]:
    """What is taken on trust of a function, and whether the promise depends on it."""
    if cause.stability is Stability.ORDER:
        how = ", in its last digits" if cause.function in _SUMS else ""
        text = f"{cause.text or _call(cause)} depends on the order of rows{how}"
        return Reason(text, cause.span), False
    return Reason(f"{_call(cause)} is trusted to give the same for the same rows", cause.span), True


def _weakest(
    result: Guarantee,
    worst: _Link | None,
    path: Sequence[Reason],
    kept: Guarantee,
    held: Reason,
    conditions: Sequence[Reason],
) -> Reason | None:
    """The link to mend first."""
    if worst is not None and result is not kept:
        return worst.reason()
    if result is not kept:
        return path[0]
    if result is not Guarantee.EXACTLY_ONCE:
        return held
    return next(iter((*path, *conditions)), None)


def _call(cause: Volatile) -> str:
    return cause.function if cause.function.endswith(")") else f"{cause.function}()"


def _sink_span(places: Places | None, query: str, number: int, entry: SinkEntry) -> Span | None:
    return places.key("queries", query, "to", number, entry.sink.kind) if places else None
