"""The delivery guarantee of each sink, from its sources' replay, the determinism of its views, and the sink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.analysis.query.nondeterminism import ReplayEffect, find_impacts, list_assumed
from millstream.analysis.query.phrasing import describe_operator, format_position, join_quoted, join_words
from millstream.analysis.query.plan_model import Stability
from millstream.connectors.api.values.replay_behaviour import Replayability, ReplayBehaviour
from millstream.pipeline.graph import PipelineGraph
from millstream.pipeline.model import OnError
from millstream.spec.guarantee import Guarantee

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.analysis.query.nondeterminism import NondeterminismImpact
    from millstream.analysis.query.plan_model import PlannedQuery, VolatileExpression
    from millstream.diagnostics.finding import Span
    from millstream.pipeline.load.places import ValuePositions
    from millstream.pipeline.model import Pipeline, SinkEntry

# Sums of floating-point numbers: a repeated batch may add them in another order.
_FLOAT_SUMS = frozenset(
    ["sum", "try_sum", "avg", "try_avg", "stddev", "stddev_pop", "variance", "var_pop", "variance_pop"]
)

# The reason for a trigger without batches.
_ROW_BY_ROW = (
    "Spark writes rows one by one, and repeats those since the last checkpoint after a stop or a crash: "
    "there is no batch id by which to recognise them"
)


@dataclass(frozen=True)
class GuaranteeReason:
    """One sentence without a full stop, and its position in the files, if known."""

    text: str
    span: Span | None = None

    def plain(self) -> dict[str, Any]:
        """Return `text`, `file` and `line` for JSON."""
        return {
            "text": self.text,
            "file": self.span.file if self.span else None,
            "line": self.span.line if self.span else None,
        }


@dataclass(frozen=True)
class Promise:
    """The delivery guarantee of one sink of one query, with its reasons.

    `reasons` go from the sources over the views to the sink. `conditions` must be true for the guarantee, and are
    not checked. `weakest` is the link that prevents a stronger guarantee, or a condition if the guarantee is already
    the strongest; `None` if there is neither. `is_planned` means that the views were read from a plan instead of
    assumed to be deterministic. `number` is the sink's index in its query, from 0.
    """

    query: str
    sink: str
    guarantee: Guarantee
    reasons: tuple[str, ...]
    weakest: GuaranteeReason | None = None
    conditions: tuple[GuaranteeReason, ...] = ()
    is_planned: bool = False
    number: int = 0

    def plain(self) -> dict[str, Any]:
        """Return the form in the JSON of `check`."""
        return {
            "query": self.query,
            "sink": self.sink,
            "guarantee": str(self.guarantee),
            "reasons": list(self.reasons),
            "weakest": self.weakest.plain() if self.weakest else None,
            "conditions": [condition.plain() for condition in self.conditions],
            "planned": self.is_planned,
        }


def compute_guarantees(
    pipeline: Pipeline, queries: Sequence[PlannedQuery] = (), places: ValuePositions | None = None
) -> list[Promise]:
    """Compute the guarantee of every sink, in the spec's order.

    Without the plan of a query its views are assumed to be deterministic, and the reasons say so. `places` gives
    the links their line numbers.
    """
    graph = PipelineGraph.of(pipeline)
    plans = {query.name: query for query in queries}
    return [
        compute_guarantee(pipeline, graph, name, number, plans.get(name), places)
        for name, query in pipeline.queries.items()
        for number in range(len(query.to))
    ]


def compute_guarantee(
    pipeline: Pipeline,
    graph: PipelineGraph,
    query: str,
    number: int,
    plan: PlannedQuery | None = None,
    places: ValuePositions | None = None,
) -> Promise:
    """Compute the guarantee of one sink of a query."""
    entry = pipeline.queries[query].to[number]
    sources = _list_links(pipeline, graph, query, places)
    sink = plan.sinks[number] if plan and number < len(plan.sinks) else None
    impacts = find_impacts(plan, sink) if plan else []
    path = _describe_unstable_path(impacts, has_several_sinks=len(pipeline.queries[query].to) > 1)
    assumptions = [_describe_assumption(cause) for cause in list_assumed(plan)] if plan else []
    sink_guarantee, sink_reason = entry.sink.guarantee(pipeline.queries[query].output_mode)
    if pipeline.trigger(query).flows:
        sink_guarantee, sink_reason = (
            max(sink_guarantee, Guarantee.AT_LEAST_ONCE, key=list(Guarantee).index),
            _ROW_BY_ROW,
        )
    reach = impacts[0].reach if impacts else ReplayEffect.NOTHING
    unreplayable = next((link for link in sources if link.replay.how is Replayability.NONE), None)
    result = combine_guarantees(
        unreplayable.replay.how if unreplayable else Replayability.EXACT, reach, sink_guarantee
    )
    sink_name = entry.sink.describe().replace(f"{pipeline.folder}/", "")
    sink_link = GuaranteeReason(
        f"{entry.sink.kind}: {sink_reason}", _find_sink_span(places, query, number, entry)
    )
    conditions = (
        *(link.reason() for link in sources if link.replay.how is Replayability.CONDITIONAL),
        *(assumption for assumption, is_condition in assumptions if is_condition),
    )
    assumption_texts = [assumption.text for assumption, _ in assumptions]
    path_texts = [reason.text for reason in path] or [
        *_describe_deterministic_path(plan),
        *assumption_texts,
    ]
    return Promise(
        query,
        sink_name,
        result,
        (*_describe_sources(sources), *path_texts, sink_link.text, *_describe_on_error(entry)),
        _find_weakest(result, unreplayable, path, sink_guarantee, sink_link, conditions),
        conditions,
        plan is not None,
        number,
    )


def _describe_on_error(entry: SinkEntry) -> list[str]:
    """Describe a sink with dead letters.

    Its guarantee is the same, because each batch is delivered by its batch id.
    """
    if entry.on_error is OnError.DEAD_LETTER_ROWS:
        return [
            "a row that it refuses is written as a dead letter, and the rest of the batch is written to the sink"
        ]
    if entry.on_error is not OnError.DEAD_LETTER:
        return []
    return ["a batch that it refuses is spooled, and delivered later with the batches after it, in order"]


def combine_guarantees(replays: Replayability, reach: ReplayEffect, sink: Guarantee) -> Guarantee:
    """Return the strongest guarantee that source, views and sink give together. A weaker link never strengthens it.

    A sink that commits the batch id with the rows skips a repeated batch: the rows committed first stay valid, unless
    the state continued from other values. A sink that overwrites rows by key needs the same keys.
    """
    order = list(Guarantee)
    bounds = [sink]
    if replays is Replayability.NONE:
        bounds.append(Guarantee.AT_MOST_ONCE)
    if reach is ReplayEffect.STATE or (reach is ReplayEffect.ROWS and sink is not Guarantee.EXACTLY_ONCE):
        bounds.append(Guarantee.AT_LEAST_ONCE)
    return max(bounds, key=order.index)


@dataclass(frozen=True)
class _Link:
    """A source of a query, and its behaviour for a repeated batch."""

    name: str
    kind: str
    is_static: bool
    replay: ReplayBehaviour
    span: Span | None

    def reason(self) -> GuaranteeReason:
        """Build the sentence about this source."""
        subject = f"{'static source' if self.is_static else 'source'} '{self.name}'"
        match self.replay.how:
            case Replayability.CONDITIONAL:
                return GuaranteeReason(f"{subject}: {self.replay.text}", self.span)
            case Replayability.NONE:
                return GuaranteeReason(f"{subject} ({self.kind}) {self.replay.text}", self.span)
            case _:
                return GuaranteeReason(f"{subject} {self.replay.text}", self.span)


def _list_links(
    pipeline: Pipeline, graph: PipelineGraph, query: str, places: ValuePositions | None
) -> list[_Link]:
    """List the sources of a query, in the spec's order."""
    links = []
    for name in graph.sources_of(query):
        entry = pipeline.sources[name]
        replay = entry.source.replay(static=entry.static)
        span = None
        if places:
            span = (
                places.value("sources", name, "source", replay.field)
                if replay.field
                else places.key("sources", name)
            )
        links.append(_Link(name, entry.source.kind, entry.static, replay, span))
    return links


def _describe_sources(sources: Sequence[_Link]) -> list[str]:
    """Describe the sources; those with the same exact replay share one sentence."""
    names_by_text: dict[str, list[str]] = {}
    for link in sources:
        if link.replay.how is Replayability.EXACT and not link.is_static:
            names_by_text.setdefault(link.replay.text, []).append(link.name)
    shared = [
        f"source{'s' if len(names) > 1 else ''} {join_quoted(names)} {text}"
        for text, names in names_by_text.items()
    ]
    other_links = [link for link in sources if link.replay.how is not Replayability.EXACT or link.is_static]
    return shared + [link.reason().text for link in other_links]


def _describe_deterministic_path(plan: PlannedQuery | None) -> list[str]:
    """Describe a path without nondeterministic expressions."""
    if plan is None:
        return ["its views are assumed to be deterministic, because no plan is read without Spark"]
    functions = {
        cause.function
        for operator in plan.walk()
        for column in operator.columns
        for cause in column.volatile
        if cause.stability is Stability.BATCH
    }
    if functions:
        names = join_words([f"{name}()" for name in sorted(functions)])
        return [f"{names} is stored with the batch; everything else depends only on the rows"]
    return [] if list_assumed(plan) else ["the same input gives the same rows: the plan is deterministic"]


def _describe_unstable_path(
    impacts: Sequence[NondeterminismImpact], *, has_several_sinks: bool
) -> list[GuaranteeReason]:
    """Describe the nondeterministic expressions, the worst first, one sentence each."""
    reasons: dict[tuple[str, str], GuaranteeReason] = {}
    for impact in impacts:
        cause = impact.cause
        location = f" ({format_position(cause.span)})" if cause.span else ""
        subject = f"{_format_call(cause)}{location} gives another value when a batch runs again"
        match impact.reach:
            case ReplayEffect.STATE:
                state_owner = describe_operator(impact.operator) if impact.operator else "an operator"
                text = (
                    f"{subject} and reaches the state of {state_owner}, which then differs from the rows already "
                    "written"
                )
            case ReplayEffect.ROWS if impact.column:
                text = f"{subject} and decides by '{impact.column}' the key or the target of a row"
            case ReplayEffect.ROWS:
                text = f"{subject} and decides which rows are written"
            case _ if has_several_sinks:
                text = f"{subject}: the sinks may disagree in '{impact.column}'"
            case _:
                text = f"{subject}: '{impact.column}' keeps the value of the first attempt"
        reasons.setdefault((cause.function, format_position(cause.span)), GuaranteeReason(text, cause.span))
    return list(reasons.values())


def _describe_assumption(cause: VolatileExpression) -> tuple[GuaranteeReason, bool]:
    """Describe an assumption about a function, and return whether the guarantee depends on it."""
    if cause.stability is Stability.ORDER:
        detail = ", in its last digits" if cause.function in _FLOAT_SUMS else ""
        text = f"{cause.text or _format_call(cause)} depends on the order of rows{detail}"
        return GuaranteeReason(text, cause.span), False
    return GuaranteeReason(
        f"{_format_call(cause)} is assumed to return the same value for the same row", cause.span
    ), True


def _find_weakest(
    result: Guarantee,
    unreplayable: _Link | None,
    path: Sequence[GuaranteeReason],
    sink_guarantee: Guarantee,
    sink_link: GuaranteeReason,
    conditions: Sequence[GuaranteeReason],
) -> GuaranteeReason | None:
    """Return the link to fix first."""
    if unreplayable is not None and result is not sink_guarantee:
        return unreplayable.reason()
    if result is not sink_guarantee:
        return path[0]
    if result is not Guarantee.EXACTLY_ONCE:
        return sink_link
    return next(iter((*path, *conditions)), None)


def _format_call(cause: VolatileExpression) -> str:
    return cause.function if cause.function.endswith(")") else f"{cause.function}()"


def _find_sink_span(places: ValuePositions | None, query: str, number: int, entry: SinkEntry) -> Span | None:
    return places.key("queries", query, "to", number, entry.sink.kind) if places else None
