"""The resources of a process as Linux tells them: its open files, in a made folder of processes."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from millstream.spark.resources import OpenFiles, open_files_reader

if TYPE_CHECKING:
    from pathlib import Path

PORTS = "sys/net/ipv4/ip_local_port_range"


def add_process(proc: Path, number: int, open_files: int, limit: str) -> None:
    """Make the folder of a process."""
    folder = proc / str(number)
    (folder / "fd").mkdir(parents=True)
    for descriptor in range(open_files):
        (folder / "fd" / str(descriptor)).touch()
    lines = ["Limit         Soft Limit  Hard Limit  Units", f"Max open files   {limit}  20000   files"]
    (folder / "limits").write_text("\n".join(lines))


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A machine with 100 local ports, the JVM as process 17 and this process."""
    add_process(tmp_path, 17, 12, "4096")
    add_process(tmp_path, os.getpid(), 3, "1024")
    (tmp_path / PORTS).parent.mkdir(parents=True)
    (tmp_path / PORTS).write_text("32768\t32867\n")
    return tmp_path


def test_the_open_files_of_the_jvm_and_of_this_process_are_counted(proc: Path) -> None:
    read = open_files_reader("17", proc=proc)

    assert read() == (OpenFiles("jvm", 12, 4096), OpenFiles("python", 3, 1024))


def test_sockets_that_stay_open_are_limited_by_the_local_ports_too(proc: Path) -> None:
    read = open_files_reader("17", "they leak", 6, proc)

    assert read() == (OpenFiles("jvm", 12, 100, "they leak", 6), OpenFiles("python", 3, 1024))


def test_a_process_without_a_limit_is_left_out(proc: Path) -> None:
    add_process(proc, 18, 5, "unlimited")

    assert [files.process for files in open_files_reader("18", proc=proc)()] == ["python"]


def test_another_system_has_nothing_to_count(tmp_path: Path) -> None:
    assert open_files_reader("self", "they leak", proc=tmp_path)() == ()


@pytest.mark.skipif(sys.platform != "linux", reason="Linux only")
def test_a_file_that_is_opened_counts() -> None:
    read = open_files_reader(str(os.getpid()))
    before = read()[0].open
    first, second = os.pipe()

    assert read()[0].open == before + 2
    os.close(first)
    os.close(second)
