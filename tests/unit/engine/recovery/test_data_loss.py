"""From where a query goes on: asked of its source for each place where its plan has it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from millstream.checkpoint import metadata
from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.metadata import QueryMetadata
from millstream.connectors.api.values.offsets import OffsetGap
from millstream.connectors.kafka.source import KafkaSource
from millstream.engine import streaming_query
from millstream.engine.recovery.data_loss import MissingOffsets, find_missing_offsets, has_passed_gaps
from millstream.engine.streaming_query import RunningQuery
from millstream.pipeline.spec_file import load_text

if TYPE_CHECKING:
    from millstream.pipeline.model import Pipeline

# A view that is united with itself: its source stands at two places, and Spark keeps one folder for both.
TWICE = tuple({"name": "clicks", "kind": "kafka", "folder": "0"} for _ in range(2))
FIRST, SECOND, THIRD = '{"clicks":{"0":3}}', '{"clicks":{"0":5}}', '{"clicks":{"0":9}}'


@pytest.fixture
def asked_sources(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The offsets that the source is asked about; no broker is there."""
    actual: list[str] = []

    def gaps(_: KafkaSource, start: str) -> list[OffsetGap]:
        actual.append(start)
        return []

    monkeypatch.setattr(KafkaSource, "gaps", gaps)
    return actual


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    """Clicks united with themselves, and a checkpoint whose first batch is planned."""
    loaded = load_text(
        "pipeline.yml",
        f"""
name: shop
defaults: {{checkpoints: {tmp_path}}}
sources: {{clicks: {{kafka: {{bootstrap_servers: "localhost:1", subscribe: clicks}}, schema: {{id: string}}}}}}
views: {{both: "SELECT id FROM clicks UNION ALL SELECT id FROM clicks"}}
queries: {{both: {{to: {{console: {{}}}}}}}}
""",
        Path("/shop"),
        {},
    )
    assert loaded.pipeline is not None, loaded.findings
    folder = tmp_path / "both"
    metadata.write(folder, QueryMetadata("both", "6a2b", (), TWICE, (), "append", {}, {}, {}))
    (folder / "sources" / "0").mkdir(parents=True)
    (folder / "sources" / "0" / "0").write_bytes(b"\0v1\n" + FIRST.encode())
    plan(folder, 0, SECOND)
    return loaded.pipeline


def plan(folder: Path, batch: int, end: str) -> None:
    """What Spark writes before a batch: how far it reads, at each place."""
    (folder / "offsets").mkdir(exist_ok=True)
    (folder / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{end}\n{end}")


def commit(folder: Path, batch: int) -> None:
    """What Spark writes after it."""
    (folder / "commits").mkdir(exist_ok=True)
    (folder / "commits" / str(batch)).write_text("v1\n{}")


def test_a_first_batch_that_comes_again_begins_where_its_one_folder_says(
    pipeline: Pipeline, asked_sources: list[str]
) -> None:
    assert find_missing_offsets(pipeline, "both", {}) == []
    assert asked_sources == [FIRST, FIRST]


def test_a_batch_that_comes_again_begins_where_the_one_before_ended(
    pipeline: Pipeline, asked_sources: list[str], tmp_path: Path
) -> None:
    commit(tmp_path / "both", 0)
    plan(tmp_path / "both", 1, THIRD)

    find_missing_offsets(pipeline, "both", {})

    assert asked_sources == [SECOND, SECOND]


def test_after_a_committed_batch_the_next_one_is_asked_about(
    pipeline: Pipeline, asked_sources: list[str], tmp_path: Path
) -> None:
    commit(tmp_path / "both", 0)

    find_missing_offsets(pipeline, "both", {})

    assert asked_sources == [SECOND, SECOND]


def test_a_gap_is_passed_once_a_batch_beyond_it_is_committed(pipeline: Pipeline, tmp_path: Path) -> None:
    gap = MissingOffsets("clicks", 0, OffsetGap("clicks", 0, 3, 5))
    wider_gap = MissingOffsets("clicks", 0, OffsetGap("clicks", 0, 3, 6))
    checkpoint = Checkpoint(pipeline.checkpoint_folder("both"))
    assert not has_passed_gaps(checkpoint, [gap])

    commit(tmp_path / "both", 0)

    assert has_passed_gaps(checkpoint, [gap])
    assert not has_passed_gaps(checkpoint, [gap, wider_gap])


def test_while_the_checkpoint_cannot_be_read_a_gap_counts_as_not_passed(
    pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gap = MissingOffsets("clicks", 0, OffsetGap("clicks", 0, 3, 5))
    commit(tmp_path / "both", 0)
    unused: Any = None
    delivered: Any = SimpleNamespace(has_delivered=True)
    query = RunningQuery(unused, pipeline, "both", unused, unused, unused, delivery=delivered, gaps=(gap,))
    assert query.has_passed_gaps()

    def read(*_: object) -> bool:
        raise ConnectionError("the name node is away")

    monkeypatch.setattr(streaming_query, "has_passed_gaps", read)

    assert not query.has_passed_gaps()
