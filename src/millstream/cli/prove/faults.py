"""Define the faults that `prove` can inject; server faults use the local stack."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from millstream.connectors import registry
from millstream.diagnostics.failure import MillstreamError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from millstream.proof.faults import Fault

# Seconds that a server is away: longer than a batch, shorter than the timeouts of clients.
AWAY = 6.0
DISK = "disk-full"


@dataclass(frozen=True)
class FaultContext:
    """The parts of a pipeline's copy that faults act on. `is_small` if its folder is a separate small disk."""

    project: Path
    servers: Sequence[str]
    points: Sequence[str]
    folder: Path
    is_small: bool


def possible_faults(stage: FaultContext) -> dict[str, Fault]:
    """Return all faults that are possible for the copy, by name."""
    # Imported here because a proof without faults needs none of these modules.
    from millstream.devstack.servers.sessions import CAN_CUT_SESSIONS
    from millstream.proof.faults import FrozenDriver, LockLoss, OutageFault, SecondDriver
    from millstream.proof.full_disk import FullDisk

    possible: list[Fault] = [SecondDriver(), LockLoss()]
    systems = registry.systems().values()
    locks = tuple(system.commit_lock for system in systems if system.commit_lock)
    undecided = [system.undecided for system in systems if system.undecided in stage.points]
    possible += [FrozenDriver(point, locks) for point in undecided]
    for server in stage.servers:
        possible.append(OutageFault(f"{server}-pause", _bound(_pause, stage.project, server)))
        possible.append(OutageFault(f"{server}-stop", _bound(_stop, stage.project, server)))
    for server in stage.servers:
        if server in CAN_CUT_SESSIONS:
            possible.append(OutageFault(f"{server}-cut", _bound(_end_sessions, stage.project, server)))
    if stage.is_small:
        possible.append(FullDisk(stage.folder))
    return {fault.name: fault for fault in possible}


def choose_faults(
    known: Mapping[str, Fault], requested: str | None, stage: FaultContext
) -> tuple[list[Fault], tuple[str, ...]]:
    """Return the requested faults, and a note on the one that is impossible on this machine.

    Raises click's `UsageError` if a name is not a fault of this pipeline.
    """
    names = [*known, DISK] if requested == "all" else [name for name in (requested or "").split(",") if name]
    notes: tuple[str, ...] = ()
    if DISK in names and not stage.is_small:
        notes = (
            f"{DISK} is left out because it needs the permission to mount a file system, which root has",
        )
    if unknown := [name for name in names if name not in {*known, DISK}]:
        raise click.UsageError(f"--faults: no fault '{unknown[0]}'; choose from {', '.join([*known, DISK])}")
    return [known[name] for name in dict.fromkeys(names) if name in known], notes


def _bound(act: Callable[..., None], *arguments: object) -> Callable[[], None]:
    return lambda: act(*arguments)


def _pause(project: Path, server: str) -> None:
    """Pause the server's processes, and resume them."""
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


def _end_sessions(project: Path, server: str) -> None:
    """End every session of Millstream in a database."""
    from millstream.devstack import stack
    from millstream.devstack.servers.sessions import CAN_CUT_SESSIONS

    CAN_CUT_SESSIONS[server](stack.environment(project))


def _pid(project: Path, server: str) -> int:
    from millstream.devstack import stack

    pid = next((running.pid for running in stack.status(project) if running.name == server), None)
    if pid is None:
        raise MillstreamError(f"{server} is not a server of the local stack", "leave out its faults")
    return pid


def _family(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue  # the process has ended
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    family = [pid]
    for member in family:
        family += [child for child, parent in parents.items() if parent == member]
    return family


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
