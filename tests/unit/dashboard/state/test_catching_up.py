"""How fast records arrive and are read, and when all of them will be read."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from millstream.dashboard.state.headline import round_up_seconds
from millstream.dashboard.state.kafka_lag import TopicLag, distinct_behind, partition_json
from millstream.engine.events.event_bus import Event
from unit.dashboard.conftest import START, at, batch
from unit.dashboard.state.topic import TRIGGER, Topic

BATCH_SECONDS = 2.0
BACKLOG = 6000


class Backlog(Topic):
    """A topic with a backlog, into which records arrive at one rate, and batches that read at most some of them."""

    def __init__(self, arriving: int, most: int) -> None:
        super().__init__(end=BACKLOG)
        self.arriving, self.most = arriving, most
        self.second = 0
        self.poll(0)

    def pass_seconds(self, seconds: int, *, has_broker: bool = True, has_batches: bool = True) -> None:
        """Let time pass: a look at the broker every three seconds, a batch of two seconds at each trigger."""
        for _ in range(seconds):
            self.second += 1
            self.end += self.arriving
            if has_broker and self.second % 3 == 0:
                self.poll(self.second)
            if not has_batches:
                continue
            if self.second % TRIGGER == 0:
                self.begin(self.second)
                self.planned = min(self.end, self.committed + self.most)
            if self.second % TRIGGER == BATCH_SECONDS and self.planned > self.committed:
                self.commit(self.second)

    def document(self) -> Any:
        return self.state.document(START + self.second)

    def estimate(self) -> float | None:
        return self.document()["caught_up_in_seconds"]


def test_a_shrinking_backlog_tells_when_all_is_read() -> None:
    # 120 are read and 20 arrive in a second.
    topic = Backlog(20, 600)
    topic.pass_seconds(30)

    headline = topic.document()["headline"]
    (query,) = topic.document()["queries"]
    (lag,) = topic.document()["lag"]

    assert (query["arrival_rate"], lag["arrival_rate"], lag["read_rate"]) == (20.0, 20.0, 120.0)
    assert (
        query["caught_up_in_seconds"] == topic.estimate() == pytest.approx(query["behind"] / 100, abs=TRIGGER)
    )
    assert headline["text"] == "Catching up"
    assert headline["detail"].endswith(f"caught up in about {round_up_seconds(topic.estimate() or 0)}")


def test_an_estimate_is_right_at_every_second_until_all_is_read() -> None:
    topic = Backlog(20, 600)
    estimates: dict[int, float] = {}
    while topic.committed < topic.end - 100:
        topic.pass_seconds(1)
        if (seconds := topic.estimate()) is not None:
            estimates[topic.second] = seconds

    assert len(estimates) > 30
    assert [
        (second, seconds)
        for second, seconds in estimates.items()
        if abs(second + seconds - topic.second) > 2 * TRIGGER
    ] == []


def test_a_backlog_that_does_not_shrink_has_no_estimate() -> None:
    topic = Backlog(120, 600)
    estimates = set()
    for _ in range(120):
        topic.pass_seconds(1)
        estimates.add(topic.estimate())

    assert estimates == {None}
    assert topic.document()["headline"]["text"] == "Running with a backlog"


def test_a_backlog_that_has_just_begun_to_grow_has_no_estimate() -> None:
    topic = Backlog(0, 600)
    topic.most = 300
    topic.pass_seconds(62)
    assert topic.estimate() is not None

    # Of the last minute, the mean is still below what is read.
    topic.arriving = 100
    topic.pass_seconds(15)

    (query,) = topic.document()["queries"]
    assert query["arrival_rate"] < 60
    assert topic.estimate() is None


def test_a_query_that_falls_behind_has_its_rates_and_no_estimate() -> None:
    topic = Backlog(220, 600)
    topic.pass_seconds(120)

    (query,) = topic.document()["queries"]
    (lag,) = topic.document()["lag"]

    assert (query["state"], query["caught_up_in_seconds"]) == ("falling_behind", None)
    assert (lag["arrival_rate"], lag["read_rate"]) == (220.0, 120.0)


def test_an_estimate_counts_down_between_two_batches() -> None:
    topic = Backlog(20, 600)
    topic.pass_seconds(33)
    estimates = []
    for _ in range(3):
        estimates.append(topic.estimate() or 0.0)
        topic.pass_seconds(1)

    assert [before - after for before, after in pairwise(estimates)] == pytest.approx([1.0, 1.0])


def test_before_the_third_batch_there_is_no_estimate() -> None:
    topic = Backlog(20, 600)
    topic.pass_seconds(int(2 * TRIGGER + BATCH_SECONDS))
    assert topic.estimate() is None

    topic.pass_seconds(int(TRIGGER))

    assert topic.estimate() is not None


def test_a_broker_that_is_silent_ends_the_estimate() -> None:
    topic = Backlog(20, 600)
    topic.pass_seconds(27)
    assert topic.estimate() is not None

    topic.pass_seconds(10, has_broker=False)

    assert topic.estimate() is None


def test_a_broker_that_is_silent_about_one_topic_ends_the_estimate() -> None:
    topic = Backlog(20, 600)
    topic.pass_seconds(27)
    assert topic.estimate() is not None

    topic.state.queries["funnel"].topics["carts", "carts"] = TopicLag(behind=4)

    assert topic.estimate() is None


def test_a_batch_that_is_overdue_ends_the_estimate() -> None:
    topic = Backlog(20, 600)
    topic.pass_seconds(27)
    assert topic.estimate() is not None

    topic.pass_seconds(int(TRIGGER + BATCH_SECONDS), has_batches=False)
    assert topic.estimate() is not None
    topic.pass_seconds(1, has_batches=False)

    assert topic.estimate() is None
    assert [lag["read_rate"] for lag in topic.document()["lag"]] == [None]


def test_a_query_that_has_stopped_will_not_catch_up() -> None:
    topic = Backlog(20, 600)
    topic.pass_seconds(27)
    assert topic.estimate() is not None

    topic.take(Event("query_stopped", "funnel", {"reason": "asked to end"}, at(27.5)))

    assert topic.estimate() is None


def test_a_partition_that_is_added_is_not_counted_as_an_arrival() -> None:
    topic = Topic()
    topic.state.observe_ends("clicks", {"clicks": {0: 100}}, START + 3)
    topic.state.observe_ends("clicks", {"clicks": {0: 130, 1: 90_000}}, START + 6)
    topic.state.observe_ends("clicks", {"clicks": {0: 160, 1: 90_030}}, START + 9)

    assert topic.state.queries["funnel"].arrival_rate("clicks") == 20.0
    assert topic.state.queries["funnel"].arrival_rate("carts") is None


def test_a_partition_that_is_added_is_not_counted_as_read() -> None:
    topic = Topic()
    for number, ends in enumerate(({"0": 100}, {"0": 130, "1": 90_000}, {"0": 160, "1": 90_030})):
        sources = [{"description": "Kafka", "endOffset": {"clicks": ends}, "numInputRows": 30}]
        topic.take(batch(number, 3 * number, sources=sources))
    lag = topic.state.queries["funnel"].topics["clicks", "clicks"]
    assert lag.read_rate() is None

    sources = [{"description": "Kafka", "endOffset": {"clicks": {"0": 190, "1": 90_060}}, "numInputRows": 60}]
    topic.take(batch(3, 9, sources=sources))

    assert lag.read_rate() == 20.0


def test_records_that_two_queries_have_not_read_count_once_in_each_partition() -> None:
    ahead, behind = TopicLag(), TopicLag()
    for lag, offsets in ((ahead, {"0": 90, "1": 50}), (behind, {"0": 70, "1": 95})):
        lag.record_batch(0.0, 0.0, offsets, {"0": 100, "1": 100})

    readers = [{("clicks", "clicks"): lag} for lag in (ahead, behind)]

    assert (ahead.behind, behind.behind) == (60, 35)
    assert [(row["partition"], row["behind"]) for row in partition_json(readers[0])] == [(1, 50), (0, 10)]
    assert distinct_behind(readers) == 30 + 50
    assert distinct_behind([*readers, {("carts", "carts"): TopicLag(behind=7)}]) == 87
    assert distinct_behind([{("carts", "carts"): TopicLag()}]) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "10 s"), (31, "40 s"), (80, "80 s"), (80.1, "2 min"), (5341, "2 h"), (5340, "89 min")],
)
def test_an_estimate_is_rounded_up(seconds: float, text: str) -> None:
    assert round_up_seconds(seconds) == text
