"""The second pipeline of the example sensors, whose rows wait for no batch: run as its README says."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from deltalake import DeltaTable

from millstream.cli.init import copy_example
from millstream.devstack.traffic.flow import RecordKind, TrafficFlow
from millstream.devstack.traffic.model import read_traffic
from trials.stage import staged

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

READINGS = 400
START = datetime(2026, 1, 1, 9, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
# So long, in seconds, a test waits for an event of the run or a record.
PATIENCE = 150.0


def millstream(folder: Path, *words: str) -> None:
    """A command in the example's folder, to its end."""
    subprocess.run(
        [sys.executable, "-m", "millstream", *words],
        cwd=folder,
        check=True,
        capture_output=True,
        timeout=PATIENCE,
    )


@contextmanager
def running(folder: Path, said: Path) -> Iterator[Iterator[dict[str, Any]]]:
    """The events of a run that goes on until the block ends; `said` is a file for what it tells a person."""
    command = [sys.executable, "-m", "millstream", "run", "-f", "at_once.yml", "--json", "--no-page"]
    with (
        said.open("a") as log,
        subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        assert process.stdout is not None
        try:
            yield (json.loads(line) for line in process.stdout)
        finally:
            process.send_signal(signal.SIGTERM)
            process.stdout.read()
            process.wait(PATIENCE)


def value(kafka: str, topic: str) -> bytes:
    """The value of a record of a topic."""
    reader = Consumer({"bootstrap.servers": kafka, "group.id": "none"})
    try:
        parts = reader.list_topics(topic, PATIENCE).topics[topic].partitions
        reader.assign([TopicPartition(topic, part, OFFSET_BEGINNING) for part in parts])
        (message,) = reader.consume(1, PATIENCE)
        assert message.error() is None
        return message.value()
    finally:
        reader.close()


def alarming(folder: Path) -> list[tuple[str, str]]:
    """Sensor and time of each reading above its sensor's limit, as often as it is sent."""
    details = "".join(file.read_text() for file in (folder / "data" / "sensor_details").glob("*.csv"))
    limits = {row["sensor_id"]: float(row["upper_limit"]) for row in csv.DictReader(details.splitlines())}
    traffic = read_traffic(folder / "traffic.yml")
    messages = islice(TrafficFlow(traffic, traffic.seed, START // timedelta(microseconds=1)), READINGS)
    lines = [record.value.decode() for record in messages if record.kind is not RecordKind.MALFORMED]
    return [(sensor, at) for sensor, value, _, at in csv.reader(lines) if float(value) > limits[sensor]]


# Real time and continuous queries are in kafka/test_real_time.py and kafka/test_flowing.py.
@pytest.mark.whole
@pytest.mark.timeout(300)
def test_each_alarm_is_kept_once_though_it_is_sent_again_after_a_stop(tmp_path: Path) -> None:
    folder = tmp_path / "sensors"
    copy_example("sensors", folder)
    expected = alarming(folder)
    remaining, read_by_log, path = [], [], tmp_path / "said.txt"
    with staged(tmp_path / "stack") as stage:
        there = ("--detach", "--kafka", stage.kafka, "--postgres-url", stage.postgres)
        millstream(folder, "up", *there)
        millstream(folder, "up", "-f", "at_once.yml", *there)
        millstream(folder, "traffic", "--rows", str(READINGS), "--start", "2026-01-01T09:00:00Z")
        for _ in range(2):
            read_by_log.append(0)
            with running(folder, path) as events:
                for event in events:
                    assert event["event"] != "query_failed", event
                    if event["event"] == "batch_committed" and event["query"] == "siren_log":
                        read_by_log[-1] += event["rows_in"]
                    if read_by_log[-1] >= len(expected):
                        break
            assert read_by_log[-1] >= len(expected), path.read_text()
            remaining.append(DeltaTable(folder / "lake" / "siren_log").to_pyarrow_table().to_pylist())
        alarm = value(stage.kafka, "alarms_at_once")
        fault = value(stage.kafka, "faults_at_once")

    assert len(set(expected)) < len(expected)
    for rows in remaining:
        messages = [(row["sensor_id"], row["event_time"].isoformat()[:19]) for row in rows]
        assert sorted(messages) == sorted({(sensor, at[:19]) for sensor, at in expected})
    assert alarm[:5] == b"\x00\x00\x00\x00\x01"
    assert json.loads(fault).keys() == {"sensor_id", "error_code", "event_time"}
