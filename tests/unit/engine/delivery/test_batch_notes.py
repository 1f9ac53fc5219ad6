"""The note about a batch that each sink stores in its ledger."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from millstream.checkpoint.folder import Checkpoint
from millstream.connectors.api.batch_ledger import UNTOLD, BatchMetadata
from millstream.engine.delivery.batch_metadata import BatchNotes
from millstream.engine.events.progress_listener import ROWS_OUT

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    """Of id 3f0c, with batch 4 planned."""
    (tmp_path / "offsets").mkdir()
    (tmp_path / "metadata").write_text(json.dumps({"id": "3f0c"}))
    (tmp_path / "offsets" / "4").write_text('v1\n{"batchTimestampMs":1004}\n{"clicks":{"0":7}}')
    return Checkpoint(tmp_path)


def test_a_planned_batch_has_its_offsets_and_its_time(checkpoint: Checkpoint) -> None:
    notes = BatchNotes(checkpoint, "3f0c")

    assert notes.planned(4) == BatchMetadata(('{"clicks":{"0":7}}',), 1004)
    assert notes.planned(5) == UNTOLD
    assert BatchNotes(checkpoint, "77aa").planned(4) == UNTOLD


def test_no_rows_have_passed_of_a_batch_that_does_not_run(checkpoint: Checkpoint) -> None:
    notes = BatchNotes(checkpoint, "3f0c")
    assert notes.passed(4) == 0

    notes.running(3, None)
    assert notes.passed(4) == 0


class RowsMetric:
    """Spark's metric of the rows of a batch."""

    def __init__(self, rows: int | None) -> None:
        self.rows = rows

    def isEmpty(self) -> bool:  # noqa: N802 - Spark's name
        return False

    def get(self) -> Any:
        return SimpleNamespace(getAs=lambda _: self.rows)


@pytest.mark.parametrize(("metric", "passed"), [(2, 2), (None, 0)])
def test_as_many_rows_have_passed_as_the_metric_of_the_running_batch_counts(
    checkpoint: Checkpoint, metric: int | None, passed: int
) -> None:
    notes = BatchNotes(checkpoint, "3f0c")
    execution = SimpleNamespace(observedMetrics=lambda: {ROWS_OUT: RowsMetric(metric)})

    notes.running(4, SimpleNamespace(lastExecution=lambda: execution))

    assert notes.passed(4) == passed
