"""A topic that is deleted has no lag any more, whether that was before the start or during the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unit.dashboard.conftest import START, at, batch, folded, started

if TYPE_CHECKING:
    from millstream.dashboard.state.run_state import RunState
    from millstream.engine.events.event_bus import Event


def batch_of(number: int, seconds: float, **ends: int) -> Event:
    """A batch that read up to these offsets of topics, and began a second before its commit."""
    offsets = {topic: {"0": end} for topic, end in ends.items()}
    source = {"description": "KafkaV2", "endOffset": offsets, "latestOffset": offsets, "numInputRows": 1}
    return batch(number, seconds, began=at(seconds - 1), sources=[source])


def topics(state: RunState) -> list[str]:
    """The topics in the lag of the run's query."""
    return [row["topic"] for row in state.document(START + 20)["lag"]]


def started_with_a_deleted_topic() -> RunState:
    return folded(started(offsets=[{"gone": {"0": 90}, "orders": {"0": 50}}]))


def test_a_topic_that_was_deleted_before_the_start_has_no_lag_after_a_look_at_the_broker() -> None:
    state = started_with_a_deleted_topic()
    assert state.queries["funnel"].behind_at() is None

    state.observe_ends("clicks", {"orders": {0: 50}}, START + 19)

    assert topics(state) == ["orders"]
    assert state.document(START + 20)["behind_at"] == at(19)


def test_a_topic_that_was_deleted_before_the_start_has_no_lag_after_a_batch() -> None:
    state = started_with_a_deleted_topic()

    state.take(batch_of(8, 19, orders=60), 9)

    assert topics(state) == ["orders"]
    assert state.document(START + 20)["behind_at"] == at(18)


def test_a_topic_that_is_deleted_during_the_run_has_no_lag_after_the_next_batch() -> None:
    state = folded(started(), batch_of(0, 6, gone=10, orders=10))
    state.observe_ends("clicks", {"gone": {0: 95}, "orders": {0: 10}}, START + 7)
    assert state.document(START + 8)["behind"] == 85

    state.take(batch_of(1, 12, orders=20), 9)

    assert state.document(START + 13)["behind"] == 0
    assert topics(state) == ["orders"]


def test_a_topic_that_is_created_while_a_batch_runs_is_not_taken_for_a_deleted_one() -> None:
    state = folded(started(), batch_of(0, 6, orders=10))
    state.observe_ends("clicks", {"new": {0: 3}, "orders": {0: 10}}, START + 11.5)

    state.take(batch_of(1, 12, orders=10), 9)

    assert topics(state) == ["new", "orders"]


def test_a_stream_that_is_not_in_the_spec_has_no_lag_before_its_first_batch() -> None:
    state = folded(started(sources=[None], offsets=[{"orders": {"0": 50}}]))

    assert topics(state) == []
