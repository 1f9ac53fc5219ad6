"""The resources of a process as Linux tells them: open files, memory and cores, in made folders of its files."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from millstream.spark import resources
from millstream.spark.resources import MIB, OpenFiles, available_cores, available_memory, open_files_reader

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


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 64 cores and 64 GiB, without any control group."""
    monkeypatch.setattr(resources, "CGROUP", tmp_path / "cgroup")
    monkeypatch.setattr(resources, "PROC", tmp_path / "proc")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 16 * MIB}.__getitem__)
    return tmp_path


def add_groups(machine: Path, groups: str, limits: dict[str, str]) -> None:
    """Put this process into control groups, and write their files."""
    (machine / "proc/self").mkdir(parents=True)
    (machine / "proc/self/cgroup").write_text(groups)
    for name, text in limits.items():
        file = machine / "cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")


UNIT = "0::/system.slice/shop.service\n"
VERSION_1 = "5:cpu,cpuacct:/docker/a1\n4:memory:/docker/a1\n1:name=systemd:/docker/a1\n0::/system.slice\n"
GROUPS: dict[str, tuple[str, dict[str, str], int, int]] = {
    "a unit of systemd": (
        UNIT,
        {
            "system.slice/shop.service/memory.max": str(4096 * MIB),
            "system.slice/shop.service/cpu.max": "150000 100000",
            "system.slice/memory.max": "max",
            "system.slice/cpu.max": "max 100000",
        },
        4096,
        2,
    ),
    "a group above has less": (
        UNIT,
        {
            "system.slice/shop.service/memory.max": str(4096 * MIB),
            "system.slice/shop.service/cpu.max": "400000 100000",
            "system.slice/memory.max": str(2048 * MIB),
            "system.slice/cpu.max": "300000 100000",
        },
        2048,
        3,
    ),
    "a container that sees its own group as the root": (
        "0::/\n",
        {"memory.max": str(1024 * MIB), "cpu.max": "50000 100000"},
        1024,
        1,
    ),
    "a group outside of what the process sees": (
        "0::/../other\n",
        {"memory.max": str(1024 * MIB), "cpu.max": "200000 100000"},
        1024,
        2,
    ),
    "version 1": (
        VERSION_1,
        {
            "memory/docker/a1/memory.limit_in_bytes": str(2048 * MIB),
            "memory/memory.limit_in_bytes": "9223372036854771712",
            "cpu/docker/a1/cpu.cfs_quota_us": "250000",
            "cpu/docker/a1/cpu.cfs_period_us": "100000",
            "cpu/cpu.cfs_quota_us": "-1",
            "cpu/cpu.cfs_period_us": "100000",
        },
        2048,
        3,
    ),
    "version 1 in a container, whose groups have the paths of the machine": (
        VERSION_1,
        {
            "memory/memory.limit_in_bytes": str(2048 * MIB),
            "cpu/cpu.cfs_quota_us": "400000",
            "cpu/cpu.cfs_period_us": "100000",
        },
        2048,
        4,
    ),
    "no limits": ("0::/user.slice\n", {"user.slice/memory.max": "max"}, 65536, 64),
    "lines of an unknown form": ("\nno groups\n1:\n", {}, 65536, 64),
}


@pytest.mark.parametrize("name", GROUPS)
def test_a_process_has_the_least_memory_and_cores_of_its_control_groups(machine: Path, name: str) -> None:
    groups, limits, mib, cores = GROUPS[name]
    add_groups(machine, groups, limits)

    assert (available_memory() // MIB, available_cores()) == (mib, cores)


@pytest.mark.usefixtures("machine")
def test_a_system_without_control_groups_gives_all_that_it_has() -> None:
    assert (available_memory() // MIB, available_cores()) == (65536, 64)
