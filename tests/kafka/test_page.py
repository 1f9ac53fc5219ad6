"""What the live page shows of a topic is what the broker itself says, and a failed query is told at once."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from millstream.connectors.kafka import latest_records
from millstream.connectors.kafka.client.partition_ends import wait_for_commits
from millstream.dashboard.end_offset_poll import watched_sources
from millstream.dashboard.http import data_preview
from millstream.dashboard.live_run import LivePage, PageOptions
from millstream.diagnostics.failure import Unreachable
from millstream.engine.events.event_bus import EventBus
from millstream.engine.run import RunOptions, run_pipeline
from millstream.pipeline.model import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from kafka.conftest import Broker
    from millstream.engine.events.event_bus import Event

# Seconds from the end of a query to the page that says so: less than one, but for a loaded machine.
AT_ONCE = 30.0


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait longer for a sink and for a partition than a page would."""
    monkeypatch.setattr(data_preview, "PATIENCE", 60.0)
    monkeypatch.setattr(latest_records, "PATIENCE", 60.0)


def shop(broker: Broker, topic: str, folder: Path) -> Pipeline:
    """Ten records a batch of a topic, divided by their amounts."""
    spec = {
        "name": "shop",
        "sources": {
            "orders": {
                "kafka": {
                    "bootstrap_servers": broker.address,
                    "subscribe": topic,
                    "starting_offsets": "earliest",
                    "max_offsets_per_trigger": 10,
                },
                "schema": {"id": "string", "amount": "int"},
            }
        },
        "views": {"shares": "SELECT id, 100 / amount AS share FROM orders"},
        "queries": {"shares": {"to": {"parquet": {"path": str(folder / "out")}}}},
        "folder": folder,
    }
    return Pipeline.model_validate(spec, context={"folder": folder})


def play(spark: SparkSession, pipeline: Pipeline, listen: Callable[[Event], None]) -> bool:
    """Run until all is read; the listener hears each event after the page has."""
    events = EventBus()
    events.listen(listen)
    fine = run_pipeline(spark, pipeline, RunOptions(until_caught_up=True), events, {})
    events.close()
    return fine


def test_lag_and_messages_are_those_of_the_broker(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic = broker.topic(2)
    for partition, many in ((0, 30), (1, 10)):
        rows = [json.dumps({"id": f"{partition}-{number}", "amount": 1}) for number in range(many)]
        broker.send(topic, partition, *rows)
    pipeline = shop(broker, topic, tmp_path)
    text: list[dict[str, tuple[int, int, int]]] = []
    reported: list[dict[str, Any]] = []

    with LivePage(pipeline, ["shares"], PageOptions(port=0)) as page:

        def listen(event: Event) -> None:
            page.feed.fold(event)
            if event.event == "batch_committed" and event.data["rows_in"]:
                reported.append(event.data["sources"][0])
                rows = page.feed.partitions("shares") or []
                text.append(
                    {str(row["partition"]): (row["offset"], row["latest"], row["behind"]) for row in rows}
                )

        assert play(spark, pipeline, listen)
        messages = get(page, "/api/messages?source=orders")["messages"]
        metrics = urllib.request.urlopen(f"{page.origin}metrics", timeout=60).read().decode()

    ends = broker_ends(broker, topic)
    assert ends == {"0": 30, "1": 10}
    left = [sum(behind for _, _, behind in item.values()) for item in text]
    assert left[0] > 20 > left[-2] > left[-1] == 0
    for lag, report in zip(text, reported, strict=True):
        read = report["endOffset"][topic]
        assert lag == {name: (read[name], ends[name], ends[name] - read[name]) for name in ends}
    assert f'topic="{topic}",partition="0"}} 0\n' in metrics
    assert {(message["partition"], message["offset"]) for message in messages} >= {(0, 29), (1, 9)}


def test_records_that_arrive_between_two_batches_are_behind_as_the_broker_says(
    broker: Broker, tmp_path: Path
) -> None:
    topic = broker.topic(2)
    broker.send(topic, 0, *["{}"] * 30)
    pipeline = shop(broker, topic, tmp_path)
    (reader,) = watched_sources(pipeline, ["orders"]).values()
    assert reader.read() == {topic: {0: 30, 1: 0}}

    broker.send(topic, 1, *["{}"] * 7)
    broker.abort(topic, 0, "{}", "{}")
    wait_for_commits({"bootstrap.servers": broker.address}, topic)

    assert reader.read() == {topic: {int(name): end for name, end in broker_ends(broker, topic).items()}}
    unknown = pipeline.sources["orders"].source.model_copy(update={"bootstrap_servers": ("127.0.0.1:1",)})
    silent = unknown.watch_end_offsets()
    assert silent is not None
    with pytest.raises(Unreachable, match=r"no Kafka broker responds at 127\.0\.0\.1:1"):
        silent.read()


def test_a_query_that_a_record_ends_is_shown_as_failed_with_the_record(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic = broker.topic(2)
    broker.send(topic, 1, json.dumps({"id": "good", "amount": 1}), json.dumps({"id": "bad", "amount": 0}))
    pipeline = shop(broker, topic, tmp_path)
    ended: list[float] = []
    visited: list[tuple[float, dict[str, Any]]] = []

    with LivePage(pipeline, ["shares"], PageOptions(port=0)) as page:
        looking = threading.Thread(target=watch, args=(page, visited))
        looking.start()

        def listen(event: Event) -> None:
            if event.event == "query_failed":
                ended.append(time.monotonic())
            page.feed.take(event)

        assert not play(spark, pipeline, listen)
        looking.join(timeout=60)
        ready = status(page, "/readyz")

    (at, state) = visited[0]
    assert at - ended[0] < AT_ONCE
    assert (state["state"], state["level"], state["worst"]["query"]) == ("failed", "bad", "shares")
    failure = state["queries"][0]["failure"]
    assert failure["place"] == {"topic": topic, "partition": 1, "offset": 1}
    assert "DIVIDE_BY_ZERO" in failure["reason"]
    assert ready == 503


def watch(page: LivePage, seen: list[tuple[float, dict[str, Any]]]) -> None:
    """Note the first state of the stream that says that the run has failed, and when it came."""
    with urllib.request.urlopen(f"{page.origin}api/events", timeout=300) as stream:
        for line in stream:
            if line.startswith(b"data: {") and b'"queries"' in line:
                data = json.loads(line[6:])
                if data["state"] == "failed":
                    seen.append((time.monotonic(), data))
                    return


def broker_ends(broker: Broker, topic: str) -> dict[str, int]:
    """The end of each partition, as the broker says it."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "ends"})
    ends = {
        str(number): consumer.get_watermark_offsets(TopicPartition(topic, number), 10)[1] for number in (0, 1)
    }
    consumer.close()
    return ends


def get(page: LivePage, path: str) -> Any:
    with urllib.request.urlopen(f"{page.origin}{path.lstrip('/')}", timeout=60) as response:
        return json.loads(response.read())


def status(page: LivePage, path: str) -> int:
    try:
        with urllib.request.urlopen(f"{page.origin}{path.lstrip('/')}", timeout=60) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code
