"""A small disk of a proof's own, and how it is filled."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from millstream.proof.full_disk import MEGABYTES, fill_disk, mount_small_disk

if TYPE_CHECKING:
    from pathlib import Path


def test_a_filled_disk_takes_nothing_more_and_what_was_on_it_stays(tmp_path: Path) -> None:
    folder = tmp_path / "7"
    folder.mkdir()

    with mount_small_disk(folder) as mounted:
        if not mounted:
            pytest.skip("this user may not mount a file system")
        assert os.path.ismount(folder)
        (folder / "kept").write_text("here")
        fill_disk(folder / "filler")
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
            (folder / "more").write_bytes(b"\0" * 4096)
        assert (folder / "filler").stat().st_size > (MEGABYTES - 1) << 20
        (folder / "filler").unlink()
        (folder / "more").unlink()

    assert not os.path.ismount(folder)
    assert [(file.name, file.read_text()) for file in folder.iterdir()] == [("kept", "here")]
