"""Records that the broker deleted before a query read them: named, refused, passed only when somebody says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import TopicPartition

from delta_tables import read_rows
from millstream.checkpoint import gap_log
from millstream.connectors.delta.writer import DeltaWriter
from millstream.diagnostics.failure import CheckpointError, CheckpointMismatch, Outage
from millstream.engine.events.event_bus import Event, EventBus
from millstream.engine.recovery.data_loss import accept_gaps
from millstream.engine.run import RunOptions, probe_connections, run_pipeline
from millstream.pipeline.model import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from conftest import Broker
    from millstream.connectors.api.writer import WriteResult

pytestmark = pytest.mark.usefixtures("small_batches")


class Copy:
    """A query that copies a topic into a Delta table."""

    def __init__(self, folder: Path, spark: SparkSession, broker: Broker) -> None:
        self.folder, self.spark, self.broker = folder, spark, broker
        self.topic = broker.topic()
        self.view = "SELECT value FROM clicks"
        self.events: list[Event] = []
        self.checkpoint = folder / ".millstream" / "checkpoints" / "copy"

    def pipeline(self, **source: Any) -> Pipeline:
        kafka = {"bootstrap_servers": self.broker.address, "subscribe": self.topic, **source}
        spec = {
            "name": "shop",
            "sources": {"clicks": {"kafka": kafka, "format": "raw"}},
            "views": {"copied": {"sql": self.view}},
            "queries": {"copy": {"from": "copied", "to": [{"delta": str(self.folder / "table")}]}},
            "folder": self.folder,
        }
        return Pipeline.model_validate(spec, context={"folder": self.folder})

    def run(
        self, *, accepted: bool = False, before_start: Callable[[], None] = lambda: None, **source: Any
    ) -> bool:
        """Run until it is caught up, as the command does."""
        self.events.clear()
        events = EventBus()
        events.listen(self.events.append)
        pipeline = self.pipeline(**source)
        try:
            probed = probe_connections(pipeline, ["copy"])
            gaps = accept_gaps(pipeline, ["copy"], probed, events, accepted=accepted)
            before_start()
            return run_pipeline(
                self.spark, pipeline, RunOptions(until_caught_up=True), events, probed, gaps=gaps
            )
        finally:
            events.close()

    def list_events(self, name: str) -> list[dict[str, Any]]:
        return [event.data for event in self.events if event.event == name]

    def rows(self) -> list[str]:
        return sorted(value.decode() for (value,) in read_rows(self.folder / "table", "value"))

    def forget(self, before: int) -> None:
        """Let the broker delete the records of partition 0 below an offset."""
        requests = self.broker.admin.delete_records([TopicPartition(self.topic, 0, before)])
        for response in requests.values():
            response.result(60)


@pytest.fixture
def copy(tmp_path: Path, spark: SparkSession, broker: Broker) -> Copy:
    """The query, with two records read and three more waiting, the first two of which the broker deletes."""
    result = Copy(tmp_path, spark, broker)
    broker.send(result.topic, 0, "a", "b")
    assert result.run()
    broker.send(result.topic, 0, "c", "d", "e")
    result.forget(4)
    return result


def test_a_gap_is_named_and_the_start_refused(copy: Copy) -> None:
    with pytest.raises(CheckpointError) as error:
        copy.run()

    assert error.value.exit_code == 3
    assert f"partition 0 of topic '{copy.topic}' has no offsets 2 to 3 any more: 2 records" in str(
        error.value
    )
    assert "--accept-gap" in error.value.fix
    assert copy.rows() == ["a", "b"]


def test_an_accepted_gap_is_passed_once_told_and_kept_in_the_checkpoint(copy: Copy) -> None:
    assert copy.run(accepted=True)

    assert copy.rows() == ["a", "b", "e"]
    (messages,) = copy.list_events("gap")
    assert {key: messages[key] for key in ("partition", "from", "to", "records")} == {
        "partition": 0,
        "from": 2,
        "to": 4,
        "records": 2,
    }
    assert [item["to"] for item in gap_log.read(copy.checkpoint)] == [4]
    assert copy.run()
    assert copy.list_events("gap") == []


def test_after_an_accepted_gap_the_next_one_ends_the_query_again(copy: Copy) -> None:
    copy.run(accepted=True)
    copy.broker.send(copy.topic, 0, "f", "g")
    copy.forget(6)

    with pytest.raises(CheckpointError, match="offsets 5 to 5 any more: 1 record"):
        copy.run()


def test_a_gap_that_the_source_is_told_to_pass_is_told_and_kept(copy: Copy) -> None:
    assert copy.run(fail_on_data_loss=False)

    assert [event["records"] for event in copy.list_events("gap")] == [2]
    assert [item["accepted"] for item in gap_log.read(copy.checkpoint)] == [False]
    assert copy.rows() == ["a", "b", "e"]


def test_records_that_go_while_a_query_runs_end_it_with_the_same_words(copy: Copy) -> None:
    copy.run(accepted=True)
    copy.broker.send(copy.topic, 0, "f", "g", "h", "i")

    fine = copy.run(before_start=lambda: copy.forget(9))

    assert not fine
    (failed,) = copy.list_events("query_failed")
    assert failed["cause"] == "gone"
    assert "has no offsets 5 to 8 any more: 4 records" in failed["reason"]
    assert "--accept-gap" in failed["fix"]
    assert copy.list_events("retry") == []


def test_an_added_topic_without_its_first_records_is_a_gap_too(copy: Copy) -> None:
    copy.run(accepted=True)
    first, copy.topic = copy.topic, copy.broker.topic()
    copy.broker.send(copy.topic, 0, "f", "g", "h")
    copy.forget(2)

    with pytest.raises(CheckpointError, match=f"topic '{copy.topic}' has no offsets 0 to 1 any more"):
        copy.run(subscribe=[first, copy.topic])

    assert copy.run(accepted=True, subscribe=[first, copy.topic])
    assert copy.rows() == ["a", "b", "e", "h"]
    assert copy.run(subscribe=[first, copy.topic])
    assert copy.list_events("gap") == []


def test_a_deleted_topic_of_a_pattern_is_named_and_can_be_accepted(copy: Copy) -> None:
    copy.run(accepted=True)
    first, copy.topic = copy.topic, copy.broker.topic()
    copy.broker.send(copy.topic, 0, "f")
    pattern = {"subscribe": (), "subscribe_pattern": f"{first}|{copy.topic}"}
    assert copy.run(**pattern)
    copy.broker.delete_topic(copy.topic)
    copy.broker.send(first, 0, "g")

    with pytest.raises(CheckpointError) as error:
        copy.run(**pattern)

    gone = f"partition 0 of topic '{copy.topic}', which the query has read up to offset 1, no longer exists"
    assert gone in str(error.value)
    assert copy.run(accepted=True, **pattern)
    assert copy.rows() == ["a", "b", "e", "f", "g"]
    assert copy.run(**pattern)
    assert copy.list_events("gap") == []


def test_a_topic_that_was_made_again_is_refused(copy: Copy) -> None:
    copy.broker.recreate_topic(copy.topic)
    copy.broker.send(copy.topic, 0, *"uvwxyz")

    with pytest.raises(CheckpointMismatch, match="was deleted and recreated"):
        copy.run(accepted=True)

    assert copy.rows() == ["a", "b"]


def test_a_topic_that_is_made_again_while_its_query_waits_for_a_sink_is_refused(
    copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy.run(accepted=True)
    copy.broker.send(copy.topic, 0, "f")

    def recreate_topic(*_: object) -> WriteResult:
        monkeypatch.undo()
        copy.broker.recreate_topic(copy.topic)
        copy.broker.send(copy.topic, 0, *"uvwxyz")
        raise Outage("the sink is away")

    monkeypatch.setattr(DeltaWriter, "write", recreate_topic)

    assert not copy.run()

    (failed,) = copy.list_events("query_failed")
    assert failed["cause"] == "checkpoint"
    assert f"topic '{copy.topic}' was deleted and recreated" in failed["reason"]
    assert copy.rows() == ["a", "b", "e"]


def test_a_batch_that_must_be_repeated_is_looked_at_from_its_own_start(copy: Copy) -> None:
    copy.run(accepted=True)
    newest = max((copy.checkpoint / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
    copy.broker.send(copy.topic, 0, "f")
    copy.forget(5)
    newest.unlink()
    newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)

    with pytest.raises(CheckpointError, match="offsets 2 to 4 any more: 3 records"):
        copy.run()


def test_a_batch_that_cannot_be_computed_is_named_by_its_offsets(copy: Copy) -> None:
    copy.run(accepted=True)
    copy.broker.send(copy.topic, 0, "f", "g")
    copy.broker.send(copy.topic, 1, "h")
    copy.view = "SELECT encode(CAST(1 / (length(value) - 1) AS STRING), 'UTF-8') AS value FROM clicks"

    assert not copy.run()

    (failed,) = copy.list_events("query_failed")
    assert sorted(failed["reads"]) == [
        f"partition 0 of topic '{copy.topic}', offsets 5 to 6",
        f"partition 1 of topic '{copy.topic}', offset 0",
    ]
