"""The state that the page shows, folded from events."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from millstream.dashboard.state import kafka_lag
from millstream.engine.events.event_bus import Event
from unit.dashboard.conftest import START, at, batch, folded, started

if TYPE_CHECKING:
    from millstream.dashboard.state.run_state import RunState

SCHEMA = Path(__file__).parents[4] / "docs/reference/page-api.schema.json"


def test_a_query_killed_by_a_record_is_the_worst_and_names_it(recorded: RunState) -> None:
    state = recorded.document(START + 60)

    worst = state["worst"]
    assert worst is not None
    assert (state["state"], state["level"], worst["query"]) == ("failed", "bad", "orders")
    assert worst["since"] == at(48.7)
    assert worst["why"].startswith("partition 1 of topic 'orders', offset 4071: [CAST_INVALID_INPUT]")
    failure = next(query["failure"] for query in state["queries"] if query["name"] == "orders")
    assert failure is not None
    assert failure["place"] == {"topic": "orders", "partition": 1, "offset": 4071}


def test_the_state_is_what_its_schema_says(recorded: RunState) -> None:
    state = json.loads(json.dumps(recorded.document(START + 60)))

    jsonschema.validate(state, json.loads(SCHEMA.read_text()))
    del state["queries"][0]["level"]
    assert not jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).is_valid(state)


def test_rows_and_lag_add_up_to_what_spark_reported(recorded: RunState) -> None:
    state = recorded.document(START + 60)

    funnel = state["queries"][0]
    assert funnel["batch"] == recorded.queries["funnel"].series.points[-1]["batch"] == 10
    of_funnel = [row for row in state["lag"] if row["query"] == "funnel"]
    assert sum(row["partitions"] for row in of_funnel) == 12
    assert sum(row["behind"] for row in of_funnel) == funnel["behind"]
    partitions = kafka_lag.partition_json(recorded.queries["funnel"].topics)
    assert len(partitions) == 12
    assert sum(row["behind"] or 0 for row in partitions) == funnel["behind"]
    assert state["rows_in"] == sum(query["rows_in"] for query in state["queries"])


def test_the_rate_of_a_query_is_shared_among_its_sources(recorded: RunState) -> None:
    state = recorded.document(START + 60)

    rates = {node["id"]: node["rate"] for node in state["graph"]["nodes"]}
    parts = [
        rates["source.clicks"],
        rates["source.cart_events"],
        recorded.queries["funnel"].source_rates["purchases"],
    ]
    assert abs(sum(part or 0 for part in parts) - (rates["query.funnel"] or 0)) < 1
    assert rates["view.funnel"] is None
    edge = next(item for item in state["graph"]["edges"] if item["to"] == "query.funnel")
    assert edge["rate"] == rates["query.funnel"]


def test_silence_for_three_triggers_and_half_a_minute_is_a_stall() -> None:
    state = folded(started(), batch(0, 6))

    assert state.document(START + 35)["state"] == "running"
    stalled = state.document(START + 40)
    assert stalled["worst"] is not None
    assert (stalled["state"], stalled["worst"]["since"]) == ("stalled", at(6))


def first_batch(**trigger: Any) -> RunState:
    """A query with this trigger, whose first batch began at second 2."""
    return folded(
        started(**trigger), Event("batch_started", "funnel", {"batch": 0, "sinks": ["console:"]}, at(2))
    )


def test_a_running_batch_without_an_interval_is_a_sign_of_life_for_ten_minutes() -> None:
    state = first_batch(trigger="available_now", trigger_seconds=None)

    assert state.document(START + 600)["state"] == "starting"
    worst = state.document(START + 603)["worst"]
    assert worst is not None
    assert (worst["state"], worst["since"]) == ("stalled", at(2))
    assert worst["why"] == "the first batch has run for 10 min 1 s; console: not yet"


def test_a_later_batch_without_an_interval_may_take_ten_times_as_long_as_the_last_one() -> None:
    state = first_batch(trigger="default", trigger_seconds=None)
    state.take(batch(0, 32, duration_ms={"triggerExecution": 30_000}), 4)
    state.take(Event("batch_started", "funnel", {"batch": 1, "sinks": []}, at(33)), 5)

    assert state.document(START + 330)["state"] == "running"
    assert state.document(START + 334)["state"] == "stalled"


def test_a_run_until_caught_up_has_not_the_interval_of_the_spec() -> None:
    state = folded(
        started(trigger="available_now", trigger_seconds=None, checkpoint_seconds=None),
        batch(0, 30, duration_ms={"triggerExecution": 20_000}),
    )

    (query,) = state.document(START + 30)["queries"]

    assert (query["trigger"], query["trigger_seconds"], query["busy"]) == ("available_now", None, None)
    assert query["state"] == "running"


def test_a_real_time_query_is_not_stalled_before_three_checkpoints() -> None:
    state = folded(started(trigger="real_time 5 minutes", trigger_seconds=None, checkpoint_seconds=300.0))

    assert state.document(START + 900)["state"] == "starting"
    assert state.document(START + 902)["state"] == "stalled"


def test_an_idle_query_is_not_stalled() -> None:
    state = folded(started(), batch(0, 6), Event("idle", "funnel", {}, at(30)))

    assert state.document(START + 40)["state"] == "idle"


def idle_at(seconds: float) -> Event:
    return Event("idle", "funnel", {}, at(seconds))


def test_an_idle_query_has_no_part_in_freshness_and_load_while_another_is_active() -> None:
    long = {"addBatch": 4400, "triggerExecution": 4500}
    quiet = (started(trigger_seconds=5.0), batch(0, 6, newest=at(5), duration_ms=long), idle_at(20))
    state = folded(started(), *(replace(event, query="quiet") for event in quiet))
    state.take(batch(0, 26, newest=at(25)), 9)

    def figures(now: float) -> tuple[float | None, float | None]:
        document = state.document(START + now)
        return document["freshness_seconds"], document["busy"]

    assert figures(27) == (2.0, 0.2)
    assert state.history[-1][2:] == (1.0, 0.2)
    state.take(idle_at(37), 10)
    assert figures(38) == (33.0, 0.9)
    assert state.history[-1][2:] == (32.0, 0.9)


def test_two_batches_that_take_longer_than_the_trigger_are_slow_and_one_is_not() -> None:
    long = {"addBatch": 7000, "triggerExecution": 7500}

    once = folded(started(), batch(0, 6, duration_ms=long))
    twice = folded(started(), batch(0, 6, duration_ms=long), batch(1, 14, duration_ms=long))

    assert once.document(START + 15)["state"] == "running"
    slow = twice.document(START + 15)["queries"][0]
    assert (slow["state"], slow["busy"]) == ("slow", 1.5)
    assert slow["why"] == "a batch takes 7.5 s, but the trigger is 5 s"


def test_a_retry_shows_its_reason_and_a_start_after_it_counts_as_a_restart() -> None:
    retry = Event("retry", "funnel", {"reason": "no broker", "wait_seconds": 2.0, "failures": 1}, at(8))

    retrying = folded(started(), batch(0, 6), retry).document(START + 9)["queries"][0]
    query = folded(started(), batch(0, 6), retry, started(10)).document(START + 11)["queries"][0]

    assert (retrying["state"], retrying["why"]) == ("retrying", "no broker; next attempt in 2.0 s")
    assert (query["state"], query["restarts"]) == ("starting", 1)


def test_batches_set_aside_are_counted_until_they_are_delivered() -> None:
    event = Event("set_aside", "funnel", {"sink": "postgres t", "batch": 1, "reason": "refused"}, at(8))
    later = Event("delivered_later", "funnel", {"sink": "postgres t", "batch": 1}, at(12))

    waiting = folded(started(), event, event, later).document(START + 13)["letters"]["set_aside"]
    none = folded(started(), event, later).document(START + 13)["letters"]["set_aside"]

    assert [(item["batches"], item["since"]) for item in waiting] == [(1, at(8))]
    assert none == []


def test_batches_of_an_earlier_run_wait_until_they_are_delivered() -> None:
    sink = {"sink": "postgres t"}
    waiting = {**sink, "batches": 3, "reason": "refused", "since": at(-600)}
    earlier = Event("still_spooled", "funnel", waiting, at(1))
    idle = Event("idle", "funnel", {}, at(11))
    aside = Event("set_aside", "funnel", {**sink, "batch": 8, "reason": "away", "batches": 4}, at(12))
    later = [
        Event("delivered_later", "funnel", {**sink, "batch": 7 - left, "batches": left}, at(20 - left))
        for left in (3, 2, 1, 0)
    ]

    def look(*events: Event) -> tuple[object, ...]:
        state = folded(earlier, started(), idle, *events).document(START + 21)
        (query,) = state["queries"]
        counts = [(entry["batches"], entry["since"]) for entry in state["letters"]["set_aside"]]
        return query["state"], query["why"], *counts

    assert look() == ("spooling", "3 batches wait for postgres t: refused", (3, at(-600)))
    assert look(aside) == ("spooling", "4 batches wait for postgres t: away", (4, at(-600)))
    assert look(aside, *later[:2]) == ("spooling", "2 batches wait for postgres t: away", (2, at(-600)))
    assert look(aside, *later) == ("idle", "")
    # A number replaces what was counted before it.
    assert look(later[1])[2:] == ((2, at(-600)),)


def test_figures_that_come_after_the_end_are_taken_and_the_end_stands() -> None:
    stopped = Event("query_stopped", "funnel", {"reason": "asked to end"}, at(7))

    query = folded(started(), stopped, batch(0, 8)).document(START + 9)["queries"][0]

    assert (query["state"], query["batch"]) == ("stopped", 0)


def test_a_query_that_has_ended_reads_no_rows_although_figures_come_after_its_end() -> None:
    ended = Event(
        "query_failed", "funnel", {"cause": "defect", "reason": "division by zero", "fix": ""}, at(7)
    )
    read = {"sources": [{"description": "K", "numInputRows": 100}]}
    state = folded(started(), batch(0, 6, **read))
    assert (state.queries["funnel"].source_rates, state.queries["funnel"].rates[-1]) == (
        {"clicks": 20.0},
        20.0,
    )

    state = folded(started(), batch(0, 6, **read), ended, batch(1, 8, **read))

    assert (state.queries["funnel"].source_rates, state.queries["funnel"].rates[-1]) == ({}, 0.0)


READ = {"sources": [{"description": "K", "numInputRows": 100}]}
"""What a batch of 100 rows has read."""


def rates_of(state: RunState, now: float) -> tuple[float | None, ...]:
    (query,) = state.document(START + now)["queries"]
    return query["input_rate"], query["processed_rate"], query["output_rate"]


@pytest.mark.parametrize(
    "event",
    [
        Event("retry", "funnel", {"reason": "no broker", "wait_seconds": 9.0, "failures": 1}, at(8)),
        Event("waiting", "funnel", {"source": "clicks", "seconds": 10}, at(8)),
    ],
)
def test_a_query_that_retries_or_waits_for_a_source_reads_no_rows(event: Event) -> None:
    state = folded(started(), batch(0, 6, **READ))
    assert rates_of(state, 7) == (20.0, 100.0, 18.0)

    state.take(event, 5)

    query = state.queries["funnel"]
    assert rates_of(state, 9) == (0.0, 0.0, 0.0)
    assert (query.source_rates, query.rates[-1]) == ({}, 0.0)
    state.sample(START + 20)
    assert state.history[-1][1] == 0.0


def test_a_source_that_responds_again_has_no_rates_before_the_next_batch() -> None:
    waiting = Event("waiting", "funnel", {"source": "clicks", "seconds": 10}, at(8))
    state = folded(started(), batch(0, 6, **READ), waiting, Event("going_on", "funnel", {}, at(9)))

    assert rates_of(state, 10) == (0.0, 0.0, 0.0)
    state.take(batch(1, 12, **READ), 5)
    assert rates_of(state, 13) == (20.0, 100.0, 18.0)


def test_a_query_that_is_stalled_or_starts_again_reads_no_rows() -> None:
    state = folded(started(), batch(0, 6, **READ))
    state.drawing.nodes.append({"id": "source.clicks", "kind": "source", "name": "clicks", "label": ""})

    def look(now: float) -> tuple[object, ...]:
        state.sample(START + now)
        document = state.document(START + now)
        (node,) = document["graph"]["nodes"]
        return document["state"], *rates_of(state, now), node["rate"], state.history[-1][1]

    assert look(15) == ("running", 20.0, 100.0, 18.0, 20.0, 20.0)
    assert look(45) == ("stalled", 0.0, 0.0, 0.0, None, 0.0)
    state.take(started(50), 5)
    assert look(56) == ("starting", 0.0, 0.0, 0.0, None, 0.0)


def test_a_query_has_no_rates_before_its_first_batch() -> None:
    assert rates_of(folded(started()), 3) == (None, None, None)


def test_dead_letters_are_told_by_reason(recorded: RunState) -> None:
    letters = recorded.document(START + 60)["letters"]

    assert [(reason["source"], reason["reason"]) for reason in letters["reasons"]] == [
        ("clicks", "malformed"),
        ("purchases", "malformed"),
    ]
    assert letters["records"] == sum(reason["records"] for reason in letters["reasons"]) > 0


def test_the_clock_of_a_run_that_is_over_stands_at_its_end() -> None:
    over = folded(started(), batch(0, 6), Event("run_stopped", "", {"exit_code": 0}, at(10)))

    state = over.document(START + 9999)

    assert (state["at"], state["run"]["exit_code"], state["queries"][0]["state"]) == (at(10), 0, "running")


def test_lag_that_grows_as_an_alert_means_it_does_so_since_its_lowest() -> None:
    def read(number: int, behind: int) -> Event:
        end, newest = {"clicks": {"0": 100}}, {"clicks": {"0": 100 + behind}}
        sources = [{"description": "Kafka", "endOffset": end, "latestOffset": newest, "numInputRows": 1}]
        return batch(number, 5 + 5 * number, sources=sources)

    def since(*behind: int) -> str | None:
        state = folded(started(), *(read(number, item) for number, item in enumerate(behind)))
        return state.document(START + 40)["lag"][0]["growing_since"]

    assert since(9, 5, 6, 7, 8) == at(10)
    assert since(5, 6, 7) is None
    assert since(5, 6, 7, 8, 3) is None
    assert since(100, 101, 102, 103, 104) is None
    assert since(5, 9, 4, 8, 5, 9, 4, 8) is None


def test_a_batch_that_leaves_far_more_than_any_before_it_is_growing_lag_at_once() -> None:
    def since(*behind: int) -> str | None:
        lag = kafka_lag.TopicLag()
        for number, left in enumerate(behind):
            lag.history.append((float(number), left))
        return lag.growing_since()

    assert since(40, 200, 60, 30_000) == 2
    assert since(40, 200, 60, 900) is None
    assert since(4000, 9000, 3000, 8000, 3000, 15_000) is None
    assert since(9000, 60, 30_000) is None


def test_records_that_wait_for_a_late_query_are_growing_lag_before_its_batch_ends() -> None:
    def since(now: int, *, is_query_late: bool) -> str | None:
        lag = kafka_lag.TopicLag(behind=now)
        for number, left in enumerate((40, 200, 60, 90)):
            lag.history.append((float(number), left))
        return lag.growing_since(is_query_late=is_query_late)

    assert since(81_000, is_query_late=True) == 3
    assert since(81_000, is_query_late=False) is None
    assert since(900, is_query_late=True) is None


def test_the_lag_of_a_query_whose_batch_takes_too_long_is_growing() -> None:
    def read(number: int) -> Event:
        end, newest = {"clicks": {"0": 100}}, {"clicks": {"0": 140}}
        sources = [{"description": "Kafka", "endOffset": end, "latestOffset": newest, "numInputRows": 1}]
        return batch(number, 5 + 5 * number, sources=sources)

    state = folded(started(), *(read(number) for number in range(4)))
    query = state.queries["funnel"]

    def since(now: float) -> str | None:
        return state.document(START + now)["lag"][0]["growing_since"]

    kafka_lag.record_ends(query.topics, START + 21, "clicks", {"clicks": {0: 80_000}})
    assert since(22) is None
    assert since(300) == at(20)
