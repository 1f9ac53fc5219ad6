"""One run per checkpoint."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from millstream.checkpoint import lock
from millstream.checkpoint.lock import (
    CheckpointLock,
    find_other_owner,
    is_owned,
    jvm_lock_file,
    lock_file,
    require_owner,
)
from millstream.diagnostics.failure import CheckpointError

HOLD = """
import sys
from pathlib import Path
from millstream.checkpoint.lock import CheckpointLock
lock = CheckpointLock(Path(sys.argv[1]), "shop.funnel")
lock.take()
print("held", flush=True)
sys.stdin.read()
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    """Another process that holds the lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_run_is_refused_with_the_name_of_the_first(tmp_path: Path) -> None:
    with holder(tmp_path) as first:
        with pytest.raises(CheckpointError) as error:
            CheckpointLock(tmp_path, "shop.funnel").take()
        first.kill()

    assert "'shop.funnel'" in error.value.what
    assert f"process {first.pid} on {os.uname().nodename}" in error.value.what


def test_a_killed_owner_holds_nothing(tmp_path: Path) -> None:
    with holder(tmp_path) as first:
        first.send_signal(signal.SIGKILL)
        first.wait()

        with CheckpointLock(tmp_path, "shop.funnel"):
            pass


def test_a_released_lock_can_be_taken_again(tmp_path: Path) -> None:
    with CheckpointLock(tmp_path, "one"):
        pass

    with CheckpointLock(tmp_path, "two"), pytest.raises(CheckpointError, match="'two'"):
        CheckpointLock(tmp_path, "three").take()


def test_an_owner_whose_lock_file_was_removed_learns_who_took_its_place(tmp_path: Path) -> None:
    with CheckpointLock(tmp_path, "shop.funnel"):
        assert find_other_owner(tmp_path) is None
        lock_file(tmp_path).unlink()
        assert find_other_owner(tmp_path) is None
        with holder(tmp_path) as other:
            other_owner = find_other_owner(tmp_path)
            other.kill()

    assert other_owner is not None
    assert f"process {other.pid}" in other_owner


def test_a_checkpoint_that_is_renamed_under_its_run_is_still_held(tmp_path: Path) -> None:
    before, after = tmp_path / "clicks", tmp_path / "page_views"
    before.mkdir()
    with holder(before) as first:
        before.rename(after)
        with pytest.raises(CheckpointError, match=f"process {first.pid}"):
            CheckpointLock(after, "shop.page_views").take()
        first.kill()


def test_a_checkpoint_is_owned_while_its_lock_names_this_process(tmp_path: Path) -> None:
    assert not is_owned(tmp_path)
    with CheckpointLock(tmp_path, "shop.funnel"):
        assert is_owned(tmp_path)
    assert not is_owned(tmp_path)
    with holder(tmp_path) as other:
        assert not is_owned(tmp_path)
        with pytest.raises(CheckpointError, match=r"taken over by 'shop\.funnel'"):
            require_owner(tmp_path)
        other.kill()


def test_a_process_of_another_container_with_the_same_id_and_host_name_is_not_this_process(
    tmp_path: Path,
) -> None:
    with CheckpointLock(tmp_path, "shop.funnel"):
        owner = json.loads(lock_file(tmp_path).read_text())
        lock_file(tmp_path).write_text(json.dumps({**owner, "token": "0123456789abcdef"}))

        assert (is_owned(tmp_path), find_other_owner(tmp_path) is None) == (False, False)


HOLD_AS_JVM = """
import fcntl, sys
handle = open(sys.argv[1], "r+")
fcntl.lockf(handle, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_jvm_whose_python_process_had_the_id_of_this_one_is_awaited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "JVM_ENDS", 0.0)
    file = jvm_lock_file(tmp_path)
    file.parent.mkdir()
    file.write_text(f"17 {os.getpid()}")
    command = [sys.executable, "-c", HOLD_AS_JVM, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as jvm:
        assert jvm.stdout is not None
        assert jvm.stdout.readline() == "held\n"

        with pytest.raises(CheckpointError, match="the JVM of an earlier run"):
            CheckpointLock(tmp_path, "shop.funnel").take()
        jvm.kill()
