"""Continuous and real time, from a topic to a topic: rows arrive, and a second start goes on from the checkpoint."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer

from millstream.checkpoint.integrity.corruption import find_damage
from millstream.diagnostics.failure import NotReady
from millstream.engine.events.event_bus import Event, EventBus
from millstream.engine.run import RunOptions, probe_connections, run_pipeline
from millstream.engine.supervisor import Supervisor
from millstream.pipeline.model import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from conftest import Broker

# A trigger, and the output mode that Spark asks for with it.
FLOWS = [({"continuous": "1 second"}, "append"), ({"real_time": "5 seconds"}, "update")]
# So long, in seconds, a test waits for a row or an event.
PATIENCE = 100.0


class Flow:
    """A pipeline from one topic to another, with a trigger."""

    def __init__(self, broker: Broker, folder: Path, trigger: dict[str, str], mode: str) -> None:
        self.broker, self.folder = broker, folder
        self.source, self.target = broker.topic(partitions=1), broker.topic(partitions=1)
        self.events: list[Event] = []
        kafka = {"bootstrap_servers": broker.address}
        self.spec: dict[str, Any] = {
            "name": "shop",
            "defaults": {"retry": {"first": "10 ms", "give_up_after": "1 minute"}},
            "sources": {
                "clicks": {
                    "kafka": {**kafka, "subscribe": self.source},
                    "schema": {"id": "string", "n": "int"},
                    "on_malformed": "drop",
                }
            },
            "views": {"doubled": "SELECT id, n * 2 AS n FROM clicks"},
            "queries": {
                "copy": {
                    "from": "doubled",
                    "output_mode": mode,
                    "trigger": trigger,
                    "to": {"kafka": {**kafka, "topic": self.target, "key": "id"}},
                }
            },
            "folder": folder,
        }

    def send(self, *numbers: int) -> None:
        """Records with these numbers."""
        self.broker.send(self.source, 0, *(json.dumps({"id": f"r{n}", "n": n}) for n in numbers))

    def run(self, spark: SparkSession, until: Callable[[Event], bool], **options: Any) -> bool:
        """Run it until an event says that it is enough, then end it as a person would."""
        pipeline = Pipeline.model_validate(self.spec, context={"folder": self.folder})
        events, supervisors = EventBus(), list[Supervisor]()

        def listen(event: Event) -> None:
            self.events.append(event)
            if until(event):
                supervisors[0].end()

        events.listen(listen)
        try:
            messages = probe_connections(pipeline, list(pipeline.queries))
            return run_pipeline(
                spark, pipeline, RunOptions(seconds=PATIENCE, **options), events, messages,
                on_supervisor=supervisors.append,
            )  # fmt: skip
        finally:
            events.close()

    def list_events(self, name: str) -> list[Event]:
        """The events of that name."""
        return [event for event in self.events if event.event == name]

    def records(self, many: int) -> list[tuple[str, int]]:
        """The first records of the target: key and number."""
        consumer = Consumer({
            "bootstrap.servers": self.broker.address, "group.id": self.target, "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        })  # fmt: skip
        consumer.subscribe([self.target])
        try:
            messages = consumer.consume(many, PATIENCE)
            return [(message.key().decode(), json.loads(message.value())["n"]) for message in messages]
        finally:
            consumer.close()


def reached(event: Event) -> int:
    """How many records of the topic the commits have left behind by then; 0 where no commit tells."""
    ends = [
        source["endOffset"] for source in event.data.get("sources", ()) if event.event == "batch_committed"
    ]
    return sum(sum(parts.values()) for end in ends if end for parts in end.values())


@pytest.mark.parametrize(("trigger", "mode"), FLOWS, ids=["continuous", "real time"])
def test_rows_arrive_and_a_second_start_goes_on_behind_them(
    spark: SparkSession, broker: Broker, tmp_path: Path, trigger: dict[str, str], mode: str
) -> None:
    flow = Flow(broker, tmp_path, trigger, mode)
    flow.send(1, 2)
    broker.send(flow.source, 0, "{broken")
    fine = flow.run(spark, lambda event: reached(event) == 3)
    first = len(flow.events)
    assert find_damage(tmp_path / ".millstream" / "checkpoints" / "copy") == []
    flow.send(3)
    fine = flow.run(spark, lambda event: reached(event) == 4) and fine

    assert fine
    assert flow.records(3) == [("r1", 2), ("r2", 4), ("r3", 6)]
    assert [event.data["batch"] is None for event in flow.list_events("query_started")] == [True, False]
    commits = [event.data for event in flow.events[first:] if event.event == "batch_committed"]
    assert sum(commit["rows_in"] for commit in commits) == 1
    assert not flow.list_events("query_failed")


@pytest.mark.parametrize(("trigger", "mode"), FLOWS, ids=["continuous", "real time"])
def test_a_row_is_there_before_its_batch_could_have_ended(
    spark: SparkSession, broker: Broker, tmp_path: Path, trigger: dict[str, str], mode: str
) -> None:
    kind = next(iter(trigger))
    flow = Flow(broker, tmp_path, {kind: "1 hour"}, mode)
    flow.send(1)
    events, supervisors = EventBus(), list[Supervisor]()
    pipeline = Pipeline.model_validate(flow.spec, context={"folder": tmp_path})
    events.listen(flow.events.append)
    runner = threading.Thread(
        target=lambda: run_pipeline(
            spark, pipeline, RunOptions(), events, {}, on_supervisor=supervisors.append
        )
    )
    runner.start()
    # Spark commits an epoch as it starts, which may hold the first row; the second one comes when that is over.
    first = flow.records(1)
    flow.send(2)
    both = flow.records(2)
    supervisors[0].end()
    runner.join(PATIENCE)
    events.close()

    assert first == [("r1", 2)]
    assert both == [("r1", 2), ("r2", 4)]
    assert not runner.is_alive()
    assert max(map(reached, flow.events)) < 2


def test_no_batch_goes_on_where_continuous_processing_ended(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    flow = Flow(broker, tmp_path, {"continuous": "1 second"}, "append")
    flow.send(1)
    flow.run(spark, lambda event: reached(event) == 1)

    assert not flow.run(spark, lambda _: False, until_caught_up=True)

    assert "was written with a continuous trigger" in flow.list_events("query_failed")[0].data["reason"]


def test_a_query_that_an_outage_ends_starts_again(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    flow = Flow(broker, tmp_path, {"real_time": "5 seconds"}, "update")
    (tmp_path / "out.py").write_text(
        "from pathlib import Path\n"
        f"FOLDER = Path({str(tmp_path)!r})\n"
        "def keep(row):\n"
        "    if not (FOLDER / 'down').exists():\n"
        "        (FOLDER / 'down').touch()\n"
        "        raise ConnectionError('java.net.ConnectException: the server is away')\n"
        "    (FOLDER / f'row-{row.id}').touch()\n"
    )
    flow.spec["queries"]["copy"]["to"] = {"foreach": "out:keep"}
    flow.send(1)
    fine = flow.run(spark, lambda event: reached(event) == 1)

    assert fine
    assert [event.data["failures"] for event in flow.list_events("retry")] == [1]
    assert (tmp_path / "row-r1").exists()


def test_partitions_for_which_there_is_no_core_are_told_before_the_start(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    flow = Flow(broker, tmp_path, {"continuous": "1 second"}, "append")
    broker.grow(flow.source, 3)

    with pytest.raises(NotReady, match="needs 3 cores; Spark has 2"):
        flow.run(spark, lambda _: False)
