"""End offsets come from the broker while a run goes on, and its silence is noticed."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from millstream.dashboard.end_offset_poll import EndOffsetPoll, look_at, watched_sources
from millstream.dashboard.export.prometheus import EventCounters
from millstream.dashboard.http.event_stream import EventStream
from millstream.diagnostics.failure import Unreachable
from millstream.pipeline.model import Pipeline
from unit.dashboard.conftest import START, batch, folded, started

if TYPE_CHECKING:
    from pathlib import Path

SOURCES = [
    {"description": "Kafka", "endOffset": {"clicks": {"0": 100}}, "latestOffset": {"clicks": {"0": 100}}}
]


class Broker:
    """Says where the topic ends; silent while it has no answer."""

    def __init__(self, end: int | None) -> None:
        self.end = end
        self.asked = threading.Semaphore(0)

    def read(self) -> dict[str, dict[int, int]]:
        self.asked.release()
        if self.end is None:
            raise Unreachable("no Kafka broker responds at user:hunter2@b:9092", "")
        return {"clicks": {0: self.end}}


def feed_of_a_run() -> EventStream:
    state = folded(started(), batch(0, 6, sources=SOURCES))
    return EventStream(state, counts=EventCounters(), clock=lambda: START + 10)


def test_records_that_arrive_after_a_batch_are_behind_without_a_batch() -> None:
    feed = feed_of_a_run()
    assert feed.document()["behind"] == 0

    look_at("clicks", Broker(4100), feed, lambda: START + 9)

    state = feed.document()
    assert (state["behind"], state["queries"][0]["behind"], state["lag"][0]["behind"]) == (4000, 4000, 4000)
    assert [row["latest"] for row in feed.partitions("funnel") or []] == [4100]
    assert state["behind_at"] == state["lag"][0]["latest_at"] == "2026-03-01T12:00:09.000Z"


def test_a_source_that_no_query_reads_changes_nothing() -> None:
    feed = feed_of_a_run()

    look_at("carts", Broker(4100), feed, lambda: START + 9)

    assert [row["source"] for row in feed.document()["lag"]] == ["clicks"]


def test_a_broker_that_does_not_respond_is_the_headline_until_it_does() -> None:
    feed, broker = feed_of_a_run(), Broker(None)

    look_at("clicks", broker, feed, lambda: START + 8)
    look_at("clicks", broker, feed, lambda: START + 9)

    headline = feed.document()["headline"]
    assert (headline["text"], headline["since"]) == (
        "The broker of clicks does not respond",
        "2026-03-01T12:00:08.000Z",
    )
    broker.end = 100
    look_at("clicks", broker, feed, lambda: START + 10)
    assert feed.document()["headline"]["text"] == "All is well"


def test_a_broker_is_asked_again_and_again_until_the_run_is_over() -> None:
    broker = Broker(None)
    poll = EndOffsetPoll({"clicks": broker}, feed_of_a_run(), every=0.001)
    poll.start()

    assert all(broker.asked.acquire(timeout=60) for _ in range(3))
    poll.close()


def test_only_streams_of_topics_are_watched(tmp_path: Path) -> None:
    topic = {"kafka": {"subscribe": "clicks", "bootstrap_servers": "127.0.0.1:1"}, "schema": {"id": "string"}}
    spec = {
        "name": "shop",
        "folder": tmp_path,
        "sources": {
            "clicks": {**topic, "format": "json"},
            "names": {**topic, "format": "json", "static": True},
            "ticks": {"rate": {"rows_per_second": 1}},
        },
        "queries": {"q": {"from": "ticks", "to": {"console": {}}}},
    }

    assert list(watched_sources(Pipeline.model_validate(spec), ["clicks", "names", "ticks"])) == ["clicks"]
