"""The lock around commits to a Delta table in a local folder, held by real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from millstream.connectors.delta.commit import commit_lock as locks
from millstream.connectors.delta.commit.commit_lock import LOCK_FILE, commit_lock
from millstream.connectors.delta.folder_check import require_writable
from millstream.diagnostics.failure import Outage
from millstream.spec.location import Location

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOLDER = """
import sys
from pathlib import Path
from millstream.connectors.delta.commit.commit_lock import commit_lock

with commit_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


@contextmanager
def held_by_another(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock until it is killed, or gets a line."""
    command = [sys.executable, "-c", HOLDER, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "held\n"
            yield other
        finally:
            other.kill()


class Stopped(Exception):
    pass


def give_up(_: float) -> None:
    raise Stopped


def test_while_another_process_holds_it_the_commit_waits_until_that_is_killed(tmp_path: Path) -> None:
    waited = []
    with held_by_another(tmp_path) as other:

        def pause(_: float) -> None:
            waited.append(other.poll())
            other.kill()
            other.wait()

        with commit_lock(tmp_path, pause):
            assert waited == [None]


def test_a_wait_that_is_given_up_leaves_the_lock_to_others(tmp_path: Path) -> None:
    with commit_lock(tmp_path):
        for _ in range(2):
            with pytest.raises(Stopped), commit_lock(tmp_path, give_up):
                pass

    with commit_lock(tmp_path, give_up):
        pass


def test_a_lock_that_is_never_free_is_told_with_the_process_that_holds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "PATIENCE", 0.0)

    with held_by_another(tmp_path) as other, pytest.raises(Outage) as error, commit_lock(tmp_path):
        pass

    assert f"process {other.pid} has been committing to Delta table {tmp_path}" in error.value.what


def test_a_table_that_was_removed_meanwhile_has_a_lock_of_its_own(tmp_path: Path) -> None:
    table = tmp_path / "table"
    with commit_lock(table):
        (table / LOCK_FILE).unlink()
        table.rmdir()

        with commit_lock(table, give_up), pytest.raises(Stopped), commit_lock(table, give_up):
            pass


def test_a_lock_whose_file_is_removed_during_the_wait_is_not_taken(tmp_path: Path) -> None:
    outer = commit_lock(tmp_path)
    outer.__enter__()

    def pause(_: float) -> None:
        (tmp_path / LOCK_FILE).unlink()
        outer.__exit__(None, None, None)

    with commit_lock(tmp_path, pause), pytest.raises(Stopped), commit_lock(tmp_path, give_up):
        pass


def test_a_table_elsewhere_needs_none() -> None:
    with commit_lock(None, give_up):
        pass


def test_a_table_that_was_never_made_is_made_beside_its_lock(tmp_path: Path) -> None:
    with commit_lock(tmp_path):
        assert os.listdir(tmp_path) == [LOCK_FILE]  # noqa: PTH208 - names are wanted

    require_writable(Location(tmp_path))
