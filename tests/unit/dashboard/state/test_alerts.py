"""Alerts fire where their condition is met, and end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.dashboard.state.alerts import Alarms, describe_value
from millstream.dashboard.state.kafka_lag import is_growing
from millstream.engine.events.event_bus import Event
from millstream.spec.alert import parse_condition
from unit.dashboard.conftest import START, at, batch, folded, started

if TYPE_CHECKING:
    from collections.abc import Callable


def firing(alert: str, *happened: Event, now: float = 20.0) -> bool:
    state = folded(started(), *happened)
    return Alarms.of([alert]).evaluate(state.queries, START + now)[0]["firing"]


@pytest.mark.parametrize(
    ("alert", "fires"),
    [
        ("watermark_lag > 10 minutes", True),
        ("watermark_lag > 11 minutes", False),
        ("freshness > 10 seconds", True),
        ("freshness > 20 seconds", False),
        ("batch_time > 500 ms", True),
        ("batch_time > 1 second", False),
        ("dead_letters > 4", True),
        ("dead_letters > 5", False),
    ],
)
def test_a_figure_above_its_limit_fires(alert: str, *, fires: bool) -> None:
    letters = Event("dead_letter", "funnel", {"batch": 0, "sources": {"clicks": 5}, "records": 5}, at(6))

    assert firing(alert, letters, batch(0, 6, watermark=at(-600), newest=at(5))) is fires


def test_one_record_from_the_future_does_not_keep_a_source_fresh() -> None:
    alert = "freshness > 10 seconds"

    assert not firing(alert, batch(0, 6, newest="2099-01-01T00:00:00Z"), now=16)
    assert firing(alert, batch(0, 6, newest="2099-01-01T00:00:00Z"), now=16.5)
    assert firing(alert, batch(0, 6, newest="2099-01-01T00:00:00Z"), batch(1, 11, newest=at(5)), now=16.5)


@pytest.mark.parametrize(
    ("alert", "value", "words"),
    [
        ("dead_letters > 0", 1.0, "1 record became a dead letter"),
        ("dead_letters > 0", 1200.0, "1,200 records became dead letters"),
        ("lag > 0", 1.0, "1 record is not yet read"),
    ],
)
def test_an_alert_says_how_many_records(alert: str, value: float, words: str) -> None:
    assert describe_value(parse_condition(alert), value) == words


def test_three_triggers_without_a_sign_of_life_fire_and_two_do_not() -> None:
    happened = (started(trigger_seconds=10.0), batch(0, 6))
    alert = "no progress for 3 triggers"

    assert not firing(alert, *happened, now=35.9)
    assert firing(alert, *happened, now=36)
    assert not firing(alert, *happened, Event("idle", "funnel", {}, at(16)), now=36)


@pytest.mark.parametrize("trigger", [None, 1.0, 3.0, 5.0])
def test_a_quiet_query_fires_nothing_between_two_reports_that_it_is_idle(trigger: float | None) -> None:
    # An idle query is reported at the first trigger that fires ten seconds after its last report.
    pause = 10 + int(trigger or 0)
    state = folded(started(trigger_seconds=trigger), batch(0, 6))
    alarms = Alarms.of(["no progress for 2 triggers"])
    fires = []

    for second in range(7, 7 + 5 * pause):
        fires.append(alarms.evaluate(state.queries, START + second)[0]["firing"])
        if (second - 6) % pause == 0:
            state.take(Event("idle", "funnel", {}, at(second)), second)

    assert fires == [False] * 5 * pause
    assert alarms.evaluate(state.queries, START + 6 + 5 * pause + 21)[0]["firing"]


def test_a_first_batch_is_no_silence_until_it_takes_two_minutes() -> None:
    alert = "no progress for 3 triggers"

    assert not firing(alert, now=100)
    assert firing(alert, now=122)


def test_a_real_time_query_makes_progress_at_each_checkpoint() -> None:
    state = folded(started(trigger="real_time 5 minutes", trigger_seconds=None, checkpoint_seconds=300.0))
    alarms = Alarms.of(["no progress for 3 triggers"])

    assert not alarms.evaluate(state.queries, START + 900)[0]["firing"]
    assert alarms.evaluate(state.queries, START + 901)[0]["firing"]


def retry(seconds: float) -> Event:
    return Event("retry", "funnel", {"reason": "away", "wait_seconds": 1.0, "failures": 1}, at(seconds))


def test_a_query_that_fails_and_starts_again_makes_no_progress() -> None:
    state = folded(started(), batch(0, 6))
    alarms = Alarms.of(["no progress for 3 triggers"])
    fires = []

    for second in range(30, 301, 30):
        fires.append(alarms.evaluate(state.queries, START + second)[0]["firing"])
        for number, event in enumerate((retry(second), started(second + 1))):
            state.take(event, number)
            fires.append(alarms.evaluate(state.queries, START + second + 1)[0]["firing"])

    assert fires == [True] * 30
    state.take(batch(1, 302), 99)
    assert not alarms.evaluate(state.queries, START + 303)[0]["firing"]


def test_a_query_whose_starts_all_fail_fires_after_two_minutes() -> None:
    state = folded()
    alarms = Alarms.of(["no progress for 3 triggers"])
    fires = []

    for second in range(2, 200, 30):
        state.take(retry(second), second)
        fires.append(alarms.evaluate(state.queries, START + second + 1)[0]["firing"])

    assert fires == [False] * 4 + [True] * 3


def test_a_query_that_is_started_again_after_its_end_has_two_minutes_again() -> None:
    alert = "no progress for 3 triggers"
    stopped = Event("query_stopped", "funnel", {"reason": "nothing more to read"}, at(7))
    again = (batch(0, 6), stopped, batch(1, 7), started(500))

    assert not firing(alert, *again, now=600)
    assert firing(alert, *again, now=621)


def test_a_query_that_ended_fires_nothing() -> None:
    stopped = Event("query_stopped", "funnel", {"reason": "asked to end"}, at(7))

    assert not firing("no progress for 3 triggers", batch(0, 6), stopped, now=500)


def test_an_alert_knows_since_when_and_forgets_when_it_is_over() -> None:
    state = folded(started(), batch(0, 6))
    alarms = Alarms.of(["no progress for 3 triggers"])

    first = alarms.evaluate(state.queries, START + 30)[0]["since"]
    later = alarms.evaluate(state.queries, START + 40)[0]["since"]
    state.take(batch(1, 41), 9)
    over = alarms.evaluate(state.queries, START + 42)[0]

    assert (first, later) == (at(30), at(30))
    assert (over["firing"], over["since"]) == (False, None)


def test_lag_that_rises_through_all_quarters_grows() -> None:
    rising = [(float(second), 100 + second) for second in range(0, 301, 5)]

    assert is_growing(rising, 300, 300)


def test_noise_a_plateau_and_too_short_a_history_do_not_grow() -> None:
    noise = [(float(second), 100 + second * 37 % 40) for second in range(0, 301, 5)]
    jump = [(float(second), 100 if second < 150 else 900) for second in range(0, 301, 5)]
    short = [(float(second), 100 + second) for second in range(100, 301, 5)]

    assert not is_growing(noise, 300, 300)
    assert not is_growing(jump, 300, 300)
    assert not is_growing(short, 300, 300)


def firing_after_seven_hours(behind: Callable[[int], int]) -> tuple[set[str], int]:
    """Return which alerts fire if so many records wait at each second, and how many values are stored."""
    state = folded(started(offsets=[{"clicks": {"0": 0}}]))
    seconds = range(2, 7 * 3600, 2)
    for second in seconds:
        state.observe_ends("clicks", {"clicks": {0: behind(second)}}, START + second)
    alarms = Alarms.of(["lag growing for 1 hour", "lag growing for 6 hours"])
    alerts = alarms.evaluate(state.queries, START + seconds[-1])
    return {alert["name"] for alert in alerts if alert["firing"]}, len(state.queries["funnel"].behind)


def test_lag_that_grows_for_hours_fires_the_alert_for_them() -> None:
    names, stored = firing_after_seven_hours(lambda second: second * second)

    assert names == {"lag growing for 1 hour", "lag growing for 6 hours"}
    assert stored <= 4000


def test_lag_that_rises_and_falls_every_ten_minutes_for_hours_fires_no_alert() -> None:
    names, _ = firing_after_seven_hours(lambda second: second % 600)

    assert names == set()


def seconds_of_growth(end: Callable[[int], int], share: float = 1.0) -> list[int]:
    """Return when `lag growing for 5 minutes` fires if this share of a topic is read every ten minutes."""
    state = folded(started(trigger_seconds=600.0, offsets=[{"clicks": {"0": 0}}]))
    alarms = Alarms.of(["lag growing for 5 minutes"])
    fires = []
    for second in range(3, 3 * 3600, 3):
        newest = {"clicks": {"0": end(second)}}
        if second % 600 == 0:
            read = {"clicks": {"0": round(end(second) * share)}}
            source = {"description": "K", "endOffset": read, "latestOffset": newest, "numInputRows": 1}
            state.take(batch(second // 600, second, sources=[source]), second)
        state.observe_ends("clicks", {"clicks": {0: end(second)}}, START + second)
        if second % 60 == 0 and alarms.evaluate(state.queries, START + second)[0]["firing"]:
            fires.append(second)
    return fires


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda second: 10 * second, id="constant"),
        pytest.param(lambda second: 10 * (second // 600 * 300 + min(second % 600, 300)), id="bursts"),
    ],
)
def test_lag_that_grows_only_until_the_next_batch_fires_no_alert(end: Callable[[int], int]) -> None:
    assert seconds_of_growth(end) == []


def test_lag_that_grows_from_batch_to_batch_fires_after_six_triggers() -> None:
    fires = seconds_of_growth(lambda second: 10 * second, share=0.5)

    assert 3600 <= fires[0] <= 7200
    assert fires[-1] == 3 * 3600 - 60
