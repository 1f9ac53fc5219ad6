"""The faults that `prove` can bring about, those of servers with the local stack's own handles."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from millstream.diagnostics.failure import MillstreamError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from millstream.proof.faults import Fault

# How long a server is away, in seconds: longer than a batch, shorter than clients give up.
AWAY = 6.0
# Points at which a driver that stood still knows its rows and has not committed them.
_UNDECIDED = ("delta.before", "files.staged", "kafka.sent", "postgres.open")
DISK = "disk-full"


@dataclass(frozen=True)
class Stage:
    """What the copy of a pipeline has that can go wrong. `small` when its folder is a small disk of its own."""

    project: Path
    servers: Sequence[str]
    points: Sequence[str]
    folder: Path
    small: bool


def faults(stage: Stage) -> dict[str, Fault]:
    """Every fault that the copy can meet, by name."""
    # Here and not above: a proof without faults needs none of it.
    from millstream.proof.faults import Around, LostLock, SecondDriver, Zombie
    from millstream.proof.full_disk import FullDisk

    found: list[Fault] = [SecondDriver(), LostLock()]
    found += [Zombie(point) for point in _UNDECIDED if point in stage.points]
    for server in stage.servers:
        found.append(Around(f"{server}-pause", _bound(_pause, stage.project, server)))
        found.append(Around(f"{server}-stop", _bound(_stop, stage.project, server)))
    if "postgres" in stage.servers:
        found.append(Around("postgres-cut", _bound(_cut, stage.project)))
    if stage.small:
        found.append(FullDisk(stage.folder))
    return {fault.name: fault for fault in found}


def chosen(
    known: Mapping[str, Fault], wanted: str | None, stage: Stage
) -> tuple[list[Fault], tuple[str, ...]]:
    """The faults that were asked for, and a note on the one that cannot be brought about here.

    Raises click's `UsageError` for a name that is no fault of this pipeline.
    """
    names = [*known, DISK] if wanted == "all" else [name for name in (wanted or "").split(",") if name]
    notes: tuple[str, ...] = ()
    if DISK in names and not stage.small:
        notes = (f"{DISK} is left out: it needs the right to mount a small file system, as root has it",)
    if strange := [name for name in names if name not in {*known, DISK}]:
        raise click.UsageError(f"--faults: no fault '{strange[0]}'; choose among {', '.join([*known, DISK])}")
    return [known[name] for name in dict.fromkeys(names) if name in known], notes


def _bound(act: Callable[..., None], *given: object) -> Callable[[], None]:
    return lambda: act(*given)


def _pause(project: Path, server: str) -> None:
    """Stop the server's processes where they stand, and let them go on."""
    processes = _family(_pid(project, server))
    try:
        for pid in processes:
            _send(pid, signal.SIGSTOP)
        threading.Event().wait(AWAY)
    finally:
        for pid in processes:
            _send(pid, signal.SIGCONT)


def _stop(project: Path, server: str) -> None:
    """Stop the server, and start it again."""
    from millstream.devstack import stack

    stack.stop(project, server)
    try:
        threading.Event().wait(AWAY)
    finally:
        stack.start(project, server)


def _cut(project: Path) -> None:
    """End every session of millstream's in the database."""
    import psycopg

    from millstream.devstack import stack

    with psycopg.connect(stack.environment(project)["POSTGRES_URL"], autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'millstream%'"
        )


def _pid(project: Path, server: str) -> int:
    from millstream.devstack import stack

    pid = next((one.pid for one in stack.status(project) if one.name == server), None)
    if pid is None:
        raise MillstreamError(f"{server} is not a server of the local stack", "leave its faults out")
    return pid


def _family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue  # it ended while it was looked at
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
