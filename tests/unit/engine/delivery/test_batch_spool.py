"""What a spool has, in which order spools are read, and what a backfill would write twice."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from millstream.diagnostics.failure import CheckpointError
from millstream.engine.delivery.batch_spool import (
    BatchSpool,
    SpooledBatch,
    find_spools,
    list_spooled_batches,
)
from millstream.engine.delivery.undelivered import check_backfill
from millstream.pipeline.spec_file import load_text

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.pipeline.model import Pipeline


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    loaded = load_text(
        "pipeline.yml",
        f"""
name: shop
defaults: {{checkpoints: {tmp_path}}}
sources: {{orders: {{json: {{path: in}}, schema: {{id: string}}}}}}
queries: {{copy: {{from: orders, to: {{delta: {{path: out}}, on_error: dead_letter}}}}}}
""",
        tmp_path,
        {},
    )
    assert loaded.pipeline is not None, loaded.findings
    return loaded.pipeline


def spool(pipeline: Pipeline, query_id: str, batch: int, at: str) -> BatchSpool:
    batch_spool = BatchSpool.of(pipeline, "copy", query_id, "delta:out")
    folder = batch_spool.folder / str(batch)
    folder.mkdir(parents=True)
    (folder / "_note.json").write_text(json.dumps({"reason": "away", "at": at, "schema": {}}))
    return batch_spool


def test_a_batch_that_was_half_written_is_not_spooled(tmp_path: Path) -> None:
    (tmp_path / ".half-1").mkdir()

    assert not BatchSpool(tmp_path).has_batches()
    assert not BatchSpool(tmp_path / "none").has_batches()


def test_the_spool_with_the_oldest_batch_comes_first(pipeline: Pipeline) -> None:
    newer = spool(pipeline, "11", 0, "2026-01-02T00:00:00+00:00")
    older = spool(pipeline, "22", 5, "2026-01-01T00:00:00+00:00")
    empty = BatchSpool.of(pipeline, "copy", "00", "delta:out")
    empty.folder.mkdir(parents=True)

    assert list(find_spools(pipeline, "copy")) == [older, newer, empty]


def test_a_batch_that_is_delivered_while_batches_are_listed_is_left_out(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    for batch in (3, 4):
        spool(pipeline, "11", batch, "2026-01-01T00:00:00+00:00")
    read_batch = BatchSpool._read_batch

    def deliver_first(self: BatchSpool, batch: int, folder: Path) -> SpooledBatch:
        if batch == 3 and folder.exists():
            shutil.rmtree(folder)
        return read_batch(self, batch, folder)

    monkeypatch.setattr(BatchSpool, "_read_batch", deliver_first)

    assert [batch.batch for batch in list_spooled_batches(pipeline, ["copy"])] == [4]


def test_a_batch_whose_metadata_is_gone_is_not_left_out(pipeline: Pipeline) -> None:
    batch_spool = spool(pipeline, "11", 3, "2026-01-01T00:00:00+00:00")
    (batch_spool.folder / "3" / "_note.json").unlink()

    with pytest.raises(FileNotFoundError):
        batch_spool.batches()


def test_a_backfill_is_refused_while_one_batch_waits_for_its_sink(pipeline: Pipeline) -> None:
    check_backfill(pipeline, "copy", "delta:out")
    spool(pipeline, "11", 0, "2026-01-02T00:00:00+00:00")

    with pytest.raises(CheckpointError, match="1 batch of query 'copy' waits for sink 'delta:out'") as error:
        check_backfill(pipeline, "copy", "delta:out")
    assert error.value.fix == "deliver them first: 'millstream deadletter replay copy'"
    check_backfill(pipeline, "copy", "delta:elsewhere")
