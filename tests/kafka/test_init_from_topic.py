"""`init --from-topic` against a broker: what it reads of a topic, and what it says of one that is missing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from millstream.cli.main import run_command
from millstream.pipeline.spec_file import load_spec

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from conftest import Broker


def test_the_disorder_of_each_partition_is_seen(
    broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = broker.topic(partitions=2)
    # The partitions are ten minutes apart, and each has a record that is 40 seconds late.
    for partition, minute in ((0, 0), (1, 10)):
        seconds = [0, 50, 10, 59]
        texts = [json.dumps({"ts": f"2026-01-01T12:{minute:02}:{second:02}Z"}) for second in seconds]
        broker.send(topic, partition, *texts)

    assert run_command(["init", str(tmp_path), "--from-topic", topic, "--servers", broker.address]) == 0

    assert "watermark 2 minutes, from 8 records" in capsys.readouterr().out
    loaded = load_spec(tmp_path / "pipeline.yml", {})
    assert not loaded.findings
    assert loaded.pipeline is not None
    (source,) = loaded.pipeline.sources.values()
    assert source.columns == {"ts": "timestamp"}


def test_a_missing_topic_gets_the_nearest_name_and_an_empty_one_a_sentence(
    broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = broker.topic()
    init = ["init", str(tmp_path), "--servers", broker.address, "--from-topic"]

    assert run_command([*init, f"{topic}s"]) == 4
    assert f"did you mean '{topic}'?" in capsys.readouterr().err
    assert run_command([*init, topic]) == 4
    assert f"topic '{topic}' at {broker.address} has no records" in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]
