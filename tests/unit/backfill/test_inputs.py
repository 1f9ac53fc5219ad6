"""How far a backfill may read: never past what its query has read, where rows would come twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millstream.backfill import inputs
from millstream.backfill.inputs import QueryProgress
from millstream.checkpoint.folder import Checkpoint
from millstream.connectors.api.values.offsets import OffsetRange
from millstream.diagnostics.failure import CheckpointError
from millstream.pipeline.spec_file import load_text

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.pipeline.model import Pipeline

SPEC = """
name: shop
defaults: {checkpoints: checkpoints}
sources:
  orders: {json: in, schema: {id: string}}
queries:
  copy: {from: orders, to: [{delta: table}]}
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    result = load_text("pipeline.yml", SPEC, tmp_path, {}).pipeline
    assert result is not None
    return result


def plan(folder: Path, *logs: str) -> Checkpoint:
    """A checkpoint with batch 0 in these logs."""
    checkpoint = Checkpoint(folder / "checkpoints" / "copy")
    for log in logs:
        (checkpoint.folder / log).mkdir(parents=True)
        about = '{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}\n{"logOffset":0}'
        (checkpoint.folder / log / "0").write_text(f"v1\n{about}")
    return checkpoint


@pytest.mark.parametrize(
    ("logs", "said"),
    [
        ([], "has not committed a batch yet"),
        (["offsets"], "has not committed a batch yet"),
        (["offsets", "commits"], "does not show how far the query has read source 'orders'"),
    ],
    ids=["it never ran", "its first batch has begun", "its record is missing"],
)
def test_a_query_of_which_no_end_is_known_is_refused(
    pipeline: Pipeline, tmp_path: Path, logs: list[str], said: str
) -> None:
    plan(tmp_path, *logs)

    with pytest.raises(CheckpointError, match=said) as error:
        inputs.check_bounded(pipeline, "copy", inputs.read_progress(pipeline, "copy"))

    assert "millstream run --until-caught-up --select copy" in error.value.fix
    assert "--into" in error.value.fix


def test_a_stream_that_cannot_be_read_up_to_its_end_is_not_read_to_another(pipeline: Pipeline) -> None:
    nobody: Any = None
    # No file is known of this range, so that the source has nothing to read it by.
    at = QueryProgress(0, None, {"orders": OffsetRange(None, '{"logOffset":0}', ())})
    raw = inputs.bounded_reader(nobody, pipeline, at, bounded=True)

    with pytest.raises(
        CheckpointError, match=r"source 'orders' \(.*\) cannot be read exactly up to the offset of the query"
    ):
        raw("orders", pipeline.sources["orders"])
