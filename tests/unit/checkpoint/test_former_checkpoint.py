"""A checkpoint that continues another one finds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.checkpoint import former_checkpoint
from millstream.checkpoint.former_checkpoint import FormerCheckpoint

if TYPE_CHECKING:
    from pathlib import Path

FORMER = FormerCheckpoint(
    folder=".sums.before-renewal-1", query_id="6a2b1c3d", batch=7, watermark=0, past="leave", is_pending=False
)


def test_offsets_are_those_of_the_former_one_until_a_batch_is_committed(tmp_path: Path) -> None:
    checkpoint = tmp_path / "sums"
    assert former_checkpoint.find_base(checkpoint) == checkpoint

    former_checkpoint.write(checkpoint, FORMER)
    assert former_checkpoint.read(checkpoint) == FORMER
    assert former_checkpoint.find_base(checkpoint) == tmp_path / FORMER.folder

    (checkpoint / "commits").mkdir()
    (checkpoint / "commits" / "0").write_text("v1\n{}")
    assert former_checkpoint.find_base(checkpoint) == checkpoint
