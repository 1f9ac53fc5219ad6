"""Traffic of a demo is bound to the demo, whatever becomes of the broker."""

from __future__ import annotations

import contextlib
import fcntl
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition

from millstream.cli.progress import ProgressReporter
from millstream.cli.run import demo
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Project


def wait_for_records(address: str) -> None:
    """Return once a record stands in the topic; the test's own limit ends the wait otherwise."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition("events", number, 0) for number in range(2)])
    assert consumer.poll(60) is not None
    consumer.close()


def test_traffic_ends_with_its_starter_though_the_broker_is_away(project: Project) -> None:
    address = project.up("kafka")["kafka"]
    command = [sys.executable, "-m", "millstream", "traffic", "--attached", "-f", str(project.folder)]
    traffic = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    project.started.append(traffic)
    wait_for_records(address)
    assert project.call("down", "kafka").returncode == 0

    assert traffic.stdin
    traffic.stdin.close()

    assert traffic.wait(100) != 0


def test_a_demo_whose_broker_died_ends_with_a_sentence_and_leaves_no_traffic(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = project.up("kafka")["kafka"]
    monkeypatch.setattr(demo, "PATIENCE", 1.0)
    monkeypatch.setattr(demo, "WAIT", 0.0)
    with demo._lock(tmp_path, ProgressReporter()) as lock:
        traffic = demo.TrafficProcess(project.folder, 50, lock)
    with contextlib.ExitStack() as running:
        running.callback(traffic.close)
        wait_for_records(address)
        assert project.call("down", "kafka").returncode == 0

        with (
            pytest.raises(NotReady, match="another demo is running"),
            demo._lock(tmp_path, ProgressReporter()),
        ):
            pass
        with pytest.raises(NotReady, match="the broker did not accept all generated records"):
            traffic.end()

    with (tmp_path / "lock").open() as free:
        fcntl.flock(free, fcntl.LOCK_EX | fcntl.LOCK_NB)
