"""Run a command and tell what it cost: seconds on the clock, and CPU seconds of it and all its descendants.

Descendants that outlive their parent (Spark's JVM does) are adopted and waited for, so that the kernel's own
account of them is complete: `python measure.py OUT.json COMMAND…`
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

_PR_SET_CHILD_SUBREAPER = 36
TICK = os.sysconf("SC_CLK_TCK")
# Fields of /proc/PID/stat behind the name.
_OWN, _OWN_AND_ENDED_CHILDRENS = slice(11, 13), slice(11, 15)


@dataclass(frozen=True)
class Cost:
    """`wall`, `user` and `system` in seconds; `memory` the largest resident size of one process, in MiB."""

    wall: float
    user: float
    system: float
    memory: float
    code: int

    @property
    def cpu(self) -> float:
        """User and system seconds."""
        return self.user + self.system


def measure(
    command: Sequence[str], log: Path, *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> Cost:
    """Run a command in a process that adopts its orphans; its output goes to `log`."""
    with TemporaryDirectory() as folder, log.open("ab") as out:
        path = Path(folder) / "cost.json"
        subprocess.run(
            [sys.executable, __file__, str(path), *command],
            cwd=cwd,
            env=env,
            stdout=out,
            stderr=out,
            check=True,
        )
        return Cost(**json.loads(path.read_text()))


def children() -> set[int]:
    """The processes that this one has started and that live."""
    return {pid for pid, parent in _processes()[0].items() if parent == os.getpid()}


def cpu_seconds(without: Container[int] = ()) -> float:
    """User and system seconds of this process and all that descend from it, the ended ones too.

    Those of `without`, children of this process, and of their descendants are left out.
    """
    parents, used = _processes()
    actual = {os.getpid()}
    while (
        more := {pid for pid, parent in parents.items() if parent in actual and pid not in without} - actual
    ):
        actual |= more
    return sum(used[pid] for pid in actual) / TICK


def tree_cpu_seconds(root: int) -> float:
    """User and system seconds of a process and all that descend from it, the ended ones too."""
    parents, used = _processes()
    tree = {root}
    while more := {pid for pid, parent in parents.items() if parent in tree} - tree:
        tree |= more
    return sum(used.get(pid, 0) for pid in tree) / TICK


def own_ticks(roots: Container[int]) -> dict[int, int]:
    """The user and system ticks of each living process below these, without those of its children."""
    parents, used = _processes(_OWN)
    below: set[int] = set()
    while more := {pid for pid, parent in parents.items() if parent in roots or parent in below} - below:
        below |= more
    return {pid: used[pid] for pid in below}


def _processes(ticks: slice = _OWN_AND_ENDED_CHILDRENS) -> tuple[dict[int, int], dict[int, int]]:
    """The parent of each process, and the ticks that it and its ended children have used."""
    parents: dict[int, int] = {}
    used: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            used[int(entry.name)] = sum(map(int, fields[ticks]))
    return parents, used


def main() -> None:
    """Run what the arguments say and write the cost as JSON."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    began = time.monotonic()
    started = subprocess.Popen(sys.argv[2:])
    code, wall = None, 0.0
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            break
        if pid == started.pid:
            code, wall = os.waitstatus_to_exitcode(status), time.monotonic() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cost = Cost(
        round(wall, 3), used.ru_utime, used.ru_stime, used.ru_maxrss / 1024, code if code is not None else -1
    )
    Path(sys.argv[1]).write_text(json.dumps(asdict(cost)))


if __name__ == "__main__":
    main()
