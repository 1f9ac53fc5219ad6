"""What is said of a checkpoint that is damaged, that has a batch in progress, or whose batches a sink lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.checkpoint import metadata
from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.metadata import QueryMetadata
from millstream.checkpoint.remote.file_system import set_file_system
from millstream.connectors.api.values.offsets import OffsetRange
from millstream.diagnostics.failure import CheckpointError
from millstream.engine.recovery.checkpoint_check import check_checkpoints
from millstream.engine.recovery.missing_batches import suggest_remedy
from millstream.engine.recovery.poison_record import _read_batch_input
from millstream.engine.recovery.uncommitted_batch import UncommittedBatch, find_uncommitted_batch
from millstream.pipeline.spec_file import load_text
from millstream.spec.location import Location
from remote_files import MemoryFileSystem

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.pipeline.model import Pipeline


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    """A copy of a topic, whose batches 0 to 2 are planned and 0 and 1 committed."""
    loaded = load_text(
        "pipeline.yml",
        f"""
name: shop
defaults: {{checkpoints: {tmp_path}}}
sources: {{clicks: {{kafka: {{bootstrap_servers: "localhost:1", subscribe: clicks}}, schema: {{id: string}}}}}}
queries: {{copy: {{from: clicks, to: {{delta: {{path: out}}}}}}}}
""",
        tmp_path,
        {},
    )
    assert loaded.pipeline is not None, loaded.findings
    folder = tmp_path / "copy"
    for log in ("offsets", "commits", "sources/0"):
        (folder / log).mkdir(parents=True)
    (folder / "metadata").write_text('{"id":"6a2b1c3d-0000-4000-8000-000000000001"}')
    (folder / "sources" / "0" / "0").write_bytes(b"\0v1\n" + offset(3).encode())
    for batch in range(3):
        (folder / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{offset(5 + batch)}")
    for batch in range(2):
        (folder / "commits" / str(batch)).write_text("v1\n{}")
    record(folder, {"name": "clicks", "kind": "kafka", "folder": "0"})
    return loaded.pipeline


def offset(number: int) -> str:
    return f'{{"clicks":{{"0":{number}}}}}'


def record(folder: Path, *sources: dict[str, str]) -> None:
    metadata.write(folder, QueryMetadata("copy", "6a2b", (), sources, (), "append", {}, {}, {}))


def test_one_damage_is_told_with_what_a_repair_would_do(pipeline: Pipeline, tmp_path: Path) -> None:
    (tmp_path / "copy" / "commits" / "1").write_text("")

    with pytest.raises(CheckpointError, match="commits/1 is empty") as error:
        check_checkpoints(pipeline, ["copy"])
    assert error.value.fix.startswith("'millstream run --repair --select copy' does this: ")


def test_a_planned_batch_is_in_progress_until_it_is_committed(pipeline: Pipeline, tmp_path: Path) -> None:
    batch = find_uncommitted_batch(pipeline, "copy")
    assert batch == UncommittedBatch(2, ("partition 0 of topic 'clicks', offset 6",))

    (tmp_path / "copy" / "commits" / "2").write_text("v1\n{}")
    assert find_uncommitted_batch(pipeline, "copy") is None


def test_a_query_that_failed_with_the_file_system_of_its_checkpoint_has_no_known_batch(
    pipeline: Pipeline,
) -> None:
    defaults = pipeline.defaults.model_copy(update={"checkpoints": Location("hdfs://nn/checkpoints")})
    away = MemoryFileSystem()
    away.is_away = True
    set_file_system(away)
    try:
        batch = find_uncommitted_batch(pipeline.model_copy(update={"defaults": defaults}), "copy")
    finally:
        set_file_system(None)

    assert batch is None


def test_a_batch_whose_range_is_known_is_read_from_where_the_one_before_ended(pipeline: Pipeline) -> None:
    assert _read_batch_input(pipeline, "copy", 2) == ("clicks", OffsetRange(offset(6), offset(7), ()))
    assert _read_batch_input(pipeline, "copy", 0) == ("clicks", OffsetRange(offset(3), offset(5), ()))


@pytest.mark.parametrize("lost", ["offsets/2", "_millstream/record.json"])
def test_a_batch_whose_range_is_not_known_is_not_searched(
    pipeline: Pipeline, tmp_path: Path, lost: str
) -> None:
    (tmp_path / "copy" / lost).unlink()

    assert _read_batch_input(pipeline, "copy", 2) is None


def test_batches_that_can_be_read_again_are_written_exactly(pipeline: Pipeline, tmp_path: Path) -> None:
    sink, checkpoint = pipeline.queries["copy"].to[0].sink, Checkpoint(tmp_path / "copy")
    skip = "continue without them: 'millstream run --adopt --select copy'"

    remedy = suggest_remedy(pipeline, "copy", sink, checkpoint, [1, 2])
    assert remedy == f"write exactly these: 'millstream backfill copy --batches 1-2'; or {skip}"

    (tmp_path / "copy" / "offsets" / "0").unlink()
    remedy = suggest_remedy(pipeline, "copy", sink, checkpoint, [1, 2])
    assert remedy.startswith(
        f"{skip}, and then add the rows that the sink lacks: 'millstream backfill copy'; "
    )
