"""The folder of a run: nobody else may clean it up while the run lives."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from millstream.spark.private_folder import create_private_folder

MAKE = "from millstream.spark.private_folder import create_private_folder; print(create_private_folder())"


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def test_a_cleaner_of_temporary_files_finds_the_folder_locked() -> None:
    folder = os.open(create_private_folder(), os.O_RDONLY | os.O_DIRECTORY)

    with pytest.raises(BlockingIOError):
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(folder)


def test_the_folder_of_a_dead_process_is_removed_and_that_of_a_living_one_stays() -> None:
    living = create_private_folder()
    made = subprocess.run([sys.executable, "-c", MAKE], check=True, capture_output=True, text=True)
    dead = Path(made.stdout.strip())
    assert dead.is_dir()
    assert living.is_dir()

    create_private_folder()

    assert not dead.exists()
    assert (living / "local").is_dir()
