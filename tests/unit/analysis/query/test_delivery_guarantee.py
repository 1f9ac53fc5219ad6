"""The guarantee of each sink, and its weakest link."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from millstream.analysis.query.delivery_guarantee import Promise, combine_guarantees, compute_guarantees
from millstream.analysis.query.nondeterminism import ReplayEffect
from millstream.analysis.query.plan_model import (
    Aggregate,
    Column,
    Deduplicate,
    Expression,
    Join,
    Operator,
    PlannedQuery,
    PlannedSink,
    Read,
    Stability,
    StatefulFunction,
    VolatileExpression,
    WatermarkOperator,
)
from millstream.connectors.api.values.replay_behaviour import Replayability
from millstream.diagnostics.finding import Span
from millstream.pipeline.spec_file import load_text
from millstream.spec.guarantee import Guarantee
from millstream.spec.output_mode import OutputMode
from millstream.spec.trigger import Trigger

ONCE, EFFECT, LEAST, MOST = Guarantee

SPEC = """name: shop
sources:
  rows: {{{source}}}
queries:
  rows: {{to: [{sinks}]}}
"""
KAFKA = 'kafka: {bootstrap_servers: "localhost:9092", subscribe: rows}, schema: {a: int}'
DELTA = "{delta: {path: lake/rows, merge_on: [id]}}"
CONSOLE = "{console: {}}"
RAND = VolatileExpression("rand", "rand(7)", Stability.UNSTABLE, Span.point("views/rows.sql", 3))
ID, MADE = Column("id", "string"), Column("made", "double", volatile=(RAND,))
CALL = Expression("rand", "rand(7)", stability=Stability.UNSTABLE, span=RAND.span)
ROWS = Read(9, "StreamingRelation", "rows", columns=(ID,), is_streaming=True, source="rows", format="kafka")


def promised(source: str, sinks: str = f"{DELTA}, {CONSOLE}", plan: Operator | None = None) -> list[Promise]:
    loaded = load_text("pipeline.yml", SPEC.format(source=source, sinks=sinks), Path("nowhere"), {})
    assert loaded.pipeline is not None, loaded.findings
    queries = [planned(plan)] if plan else []
    return compute_guarantees(loaded.pipeline, queries, loaded.places)


def planned(root: Operator) -> PlannedQuery:
    sinks = (PlannedSink("delta lake/rows", "delta", key=("id",)), PlannedSink("console", "console"))
    return PlannedQuery("rows", root, OutputMode.APPEND, Trigger(), sinks)


def project(*columns: Column, over: Operator = ROWS) -> Operator:
    return Operator(1, "Project", "Project", (over,), columns, is_streaming=True)


def test_a_replayable_source_and_an_atomic_sink_give_exactly_once() -> None:
    assert promised(KAFKA)[0].guarantee is ONCE


def test_the_weaker_sink_of_a_query_does_not_weaken_the_other() -> None:
    assert [promise.guarantee for promise in promised(KAFKA)] == [ONCE, LEAST]


def test_a_sink_that_may_repeat_rows_is_its_own_weakest_link() -> None:
    weakest = promised(KAFKA)[1].weakest

    assert weakest
    assert weakest.text.startswith("console: ")
    assert weakest.span
    assert weakest.span.line == 5


def test_a_source_that_cannot_be_read_again_gives_at_most_once_and_says_so() -> None:
    first = promised("rate: 1")[0]

    assert first.guarantee is MOST
    assert first.weakest
    assert first.weakest.text == "source 'rows' (rate) cannot replay a lost batch"
    assert first.weakest.span
    assert first.weakest.span.line == 3


def test_a_source_that_passes_over_gaps_gives_at_most_once() -> None:
    kafka = KAFKA.replace("subscribe: rows", "subscribe: rows, fail_on_data_loss: false")

    assert promised(kafka)[0].guarantee is MOST


def test_files_can_be_read_again_on_a_condition_that_is_told() -> None:
    first = promised("json: data, schema: {a: int}")[0]

    assert first.guarantee is ONCE
    assert [reason.text for reason in first.conditions] == [
        "source 'rows': no file of it may be changed in place"
    ]
    assert first.weakest == first.conditions[0]


def test_without_a_plan_the_path_is_taken_on_trust_and_said_to_be() -> None:
    first = promised(KAFKA)[0]

    assert not first.is_planned
    assert "its views are assumed to be deterministic, because no plan is read without Spark" in first.reasons


def test_a_plan_without_volatile_expressions_says_so() -> None:
    first = promised(KAFKA, plan=project(ID))[0]

    assert first.is_planned
    assert "the same input gives the same rows: the plan is deterministic" in first.reasons


def test_an_unstable_value_leaves_an_atomic_sink_exactly_once_and_its_sinks_at_odds() -> None:
    first = promised(KAFKA, plan=project(ID, MADE))[0]

    assert first.guarantee is ONCE
    assert first.weakest
    assert first.weakest.span == RAND.span
    assert first.weakest.text == (
        "rand() (views/rows.sql:3) gives another value when a batch runs again: the sinks may disagree in 'made'"
    )


def test_a_single_sink_keeps_what_the_first_attempt_gave() -> None:
    first = promised(KAFKA, DELTA, project(ID, MADE))[0]

    assert first.weakest
    assert first.weakest.text.endswith("'made' keeps the value of the first attempt")


def test_an_unstable_key_of_an_atomic_sink_is_told() -> None:
    first = promised(KAFKA, DELTA, project(replace(MADE, name="id")))[0]

    assert first.guarantee is ONCE
    assert first.weakest
    assert "decides by 'id' the key or the target of a row" in first.weakest.text


GROUPED = Aggregate(
    2, "Aggregate", "", (project(ID, MADE),), (ID,), is_streaming=True, keys=(MADE,), view="sums"
)
SUMMED = replace(GROUPED, keys=(ID,), functions=(Expression("sum", "", inputs=(CALL,)),))
UNIQUE = Deduplicate(2, "Deduplicate", "", (project(ID, MADE),), (ID,), is_streaming=True, keys=(MADE,))
JOINED = Join(2, "Join", "", (project(MADE), project(ID)), (ID,), is_streaming=True)
OWN = StatefulFunction(2, "TransformWithState", "", (project(MADE),), (ID,), is_streaming=True, function="f")
FILTERED = Operator(3, "Filter", "", (ROWS,), (ID,), (CALL,), is_streaming=True)
MARKED = WatermarkOperator(
    3, "EventTimeWatermark", "", (project(MADE),), (MADE,), is_streaming=True, event_time="made"
)


@pytest.mark.parametrize(
    "plan",
    [
        GROUPED,
        SUMMED,
        UNIQUE,
        JOINED,
        OWN,
        replace(GROUPED, keys=(ID,), inputs=(FILTERED,)),
        replace(GROUPED, keys=(ID,), inputs=(MARKED,)),
        project(ID, over=GROUPED),
    ],
    ids=["key", "value", "deduplication", "join", "function", "filter", "watermark", "above"],
)
def test_state_that_an_unstable_value_reaches_makes_an_atomic_sink_at_least_once(plan: Operator) -> None:
    first = promised(KAFKA, plan=plan)[0]

    assert first.guarantee is LEAST
    assert first.weakest
    assert "reaches the state of" in first.weakest.text


@pytest.mark.parametrize(
    "plan",
    [
        project(MADE, over=replace(GROUPED, keys=(ID,))),
        replace(UNIQUE, keys=(ID,)),
        replace(JOINED, inputs=(project(MADE), replace(ROWS, is_streaming=False))),
        replace(GROUPED, is_streaming=False),
        FILTERED,
    ],
    ids=["after the state", "beside the key", "a static side", "a static table", "no state"],
)
def test_an_unstable_value_that_reaches_no_state_leaves_it_exactly_once(plan: Operator) -> None:
    assert promised(KAFKA, plan=plan)[0].guarantee is ONCE


def test_a_value_that_is_kept_with_the_batch_is_no_weakness() -> None:
    cause = VolatileExpression("current_timestamp", "current_timestamp()", Stability.BATCH)
    plan = project(ID, Column("at", "timestamp", volatile=(cause,)))

    first = promised(KAFKA, plan=plan)[0]

    assert (first.guarantee, first.weakest) == (ONCE, None)
    assert (
        "current_timestamp() is stored with the batch; everything else depends only on the rows"
        in first.reasons
    )


def test_a_function_of_the_users_is_a_condition() -> None:
    own = VolatileExpression("score", "score(id)", Stability.UNKNOWN)

    first = promised(KAFKA, plan=project(ID, Column("s", "double", volatile=(own,))))[0]

    assert first.guarantee is ONCE
    assert [reason.text for reason in first.conditions] == [
        "score() is assumed to return the same value for the same row"
    ]


TABLE = [
    # source, path, and what happens to sinks that are exactly-once, effectively-once, at-least-once, at-most-once
    (Replayability.EXACT, ReplayEffect.NOTHING, (ONCE, EFFECT, LEAST, MOST)),
    (Replayability.EXACT, ReplayEffect.VALUES, (ONCE, EFFECT, LEAST, MOST)),
    (Replayability.EXACT, ReplayEffect.ROWS, (ONCE, LEAST, LEAST, MOST)),
    (Replayability.EXACT, ReplayEffect.STATE, (LEAST, LEAST, LEAST, MOST)),
    (Replayability.CONDITIONAL, ReplayEffect.NOTHING, (ONCE, EFFECT, LEAST, MOST)),
    (Replayability.CONDITIONAL, ReplayEffect.VALUES, (ONCE, EFFECT, LEAST, MOST)),
    (Replayability.CONDITIONAL, ReplayEffect.ROWS, (ONCE, LEAST, LEAST, MOST)),
    (Replayability.CONDITIONAL, ReplayEffect.STATE, (LEAST, LEAST, LEAST, MOST)),
    *((Replayability.NONE, reach, (MOST, MOST, MOST, MOST)) for reach in ReplayEffect),
]


@pytest.mark.parametrize(("replays", "reach", "wanted"), TABLE)
def test_the_lattice(replays: Replayability, reach: ReplayEffect, wanted: tuple[Guarantee, ...]) -> None:
    assert tuple(combine_guarantees(replays, reach, sink) for sink in Guarantee) == wanted


def test_making_any_link_weaker_never_makes_the_promise_stronger() -> None:
    strength = list(Guarantee).index
    links = list(product(Replayability, ReplayEffect, Guarantee))

    def weaker(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
        return all(list(type(a)).index(a) <= list(type(b)).index(b) for a, b in zip(one, other, strict=True))  # type: ignore[call-overload]

    pairs = [(link, other) for link in links for other in links if weaker(link, other)]
    assert all(
        strength(combine_guarantees(*item)) <= strength(combine_guarantees(*other)) for item, other in pairs
    )


def test_a_promise_is_as_the_page_of_json_shows_it() -> None:
    assert promised("rate: 1")[0].plain()["weakest"] == {
        "text": "source 'rows' (rate) cannot replay a lost batch",
        "file": "pipeline.yml",
        "line": 3,
    }
