"""Kills and suspensions of drivers and workers, one after the other, in the course of one project."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from acceptance.project import until
from millstream.connectors.failpoints import VARIABLE
from millstream.devstack.stack import start
from millstream.devstack.supervisor.state import Home

if TYPE_CHECKING:
    from collections.abc import Sequence

    from acceptance.project import Done, Project, Running
    from millstream.devstack.supervisor.state import Endpoints

# In this order the batch of the files advances by one at most, so that each point is met.
POINTS = (
    "batch.begun",
    "delta.before",
    "files.staged",
    "letters.kept",
    "files.committed",
    "delta.committed",
    "files.published",
    "batch.delivered",
)
SLOWLY = ("--set", "defaults.trigger=1 second")
# More than all drivers but the last one read until they are interrupted.
MANY_FILES = 30


def kill_at_points(project: Project, points: Sequence[str], time: int) -> None:
    """Start a run for each point, and let Python die by SIGKILL the `time`-th time that it comes there.

    Its JVM ends by itself some moments later, as after any death of Python.
    """
    for point in points:
        run = project.start("run", "--json", "--no-page", **{VARIABLE: f"{point}=kill@{time}"})
        assert run.ends() == -signal.SIGKILL, f"{point}\n{run.words()}"


def run_with_kills_of_a_worker_and_the_driver(shop: Project, cluster: Endpoints, **variables: str) -> None:
    """Kill a worker while a run has batches, and then the driver, and let another run catch up in one batch.

    That one takes a core, and so one executor: the first run has tried several.
    """
    first = shop.start("run", "--master", cluster.spark, "--json", "--no-page", **variables)
    for query in ("totals", "priced"):
        first.await_event("batch_committed", query=query)
    _assert_executors_map_the_archive_of(first, cluster)

    _kill_server(cluster.folder, "spark-worker-1")
    first.await_event("batch_committed", len(first.list_events("batch_committed")) + 2)
    first.kill()
    start(cluster.folder, "spark-worker-1")
    large = ("--set", "sources.orders.kafka.max_offsets_per_trigger=10000")
    second = shop.start(
        "run",
        "--master",
        cluster.spark,
        "--until-caught-up",
        "--json",
        "--no-page",
        *large,
        **variables,
        CORES="1",
    )

    assert second.ends() == 0, second.words()


def suspend_at_points(project: Project, points: Sequence[str]) -> list[Running]:
    """Start a run for each failpoint, which takes over from the former one and is suspended the second time there.

    Python is suspended, and its JVM waits for it.
    """
    return [
        _await_suspension(
            project.start("run", "--json", "--no-page", *read_files(number), **{VARIABLE: f"{point}=stop@2"})
        )
        for number, point in enumerate(points, 1)
    ]


def read_files(number: int) -> tuple[str, ...]:
    """Return arguments of a run whose batches have so many files, and so differ from those of other runs."""
    return (*SLOWLY, "--set", f"sources.orders.json.max_files_per_trigger={number}")


def suspend(run: Running) -> None:
    """Suspend both processes of a driver."""
    python, *others = _list_processes(run)
    assert others, "the JVM is not suspended"
    for process in (python, *others):
        os.kill(process, signal.SIGSTOP)


def resume(run: Running) -> None:
    """Let a suspended driver continue."""
    for process in _list_processes(run):
        os.kill(process, signal.SIGCONT)


def assert_taken_over(run: Running) -> None:
    """Check that a driver has ended by itself, because another one has its checkpoints."""
    assert run.ends() == 3, run.words()
    # Suspended before its queries have started, it says so to a person alone.
    reasons = [run.words(), *(event["reason"] for event in run.list_events("query_failed"))]
    assert any("taken over by" in reason or "another run committed" in reason for reason in reasons), reasons


def _kill_server(folder: Path, server: str) -> None:
    """Kill a server of the local stack, which stays away until it is started."""
    state = Home(folder).state()
    assert state is not None
    process = state.servers[server].process
    assert process is not None
    process.send(signal.SIGKILL)


def _assert_executors_map_the_archive_of(run: Running, cluster: Endpoints) -> None:
    """Check that executors have their classes from the same archive as their driver, which has none at first."""
    _, driver = _list_processes(run)
    executors = [
        folder
        for folder in Path("/proc").iterdir()
        if folder.name.isdigit()
        and "CoarseGrainedExecutorBackend" in _read(folder / "cmdline")
        and (folder / "cwd").resolve().is_relative_to(Home(cluster.folder) / "spark")
    ]
    assert executors
    for executor in executors:
        assert _list_archives(executor) == _list_archives(Path(f"/proc/{driver}"))


def _list_archives(process: Path) -> set[str]:
    """Return the archives of classes that we have made and a JVM has mapped."""
    return {line.split()[-1] for line in _read(process / "maps").splitlines() if "/archives/" in line}


def _read(file: Path) -> str:
    """Return what stands in a file of a process; nothing if that has ended."""
    with contextlib.suppress(OSError):
        return file.read_text(encoding="utf-8", errors="replace")
    return ""


def _list_processes(run: Running) -> list[int]:
    """Return the driver's processes: Python, and the JVM that it has started."""
    python = run.process.pid
    children = Path(f"/proc/{python}/task/{python}/children").read_text(encoding="utf-8").split()
    return [python, *map(int, children)]


def _await_suspension(run: Running) -> Running:
    def is_suspended() -> bool:
        assert run.process.poll() is None, run.words()
        status = Path(f"/proc/{run.process.pid}/stat").read_text(encoding="utf-8")
        return status.rpartition(")")[2].split()[0] == "T"

    until(is_suspended, 240, "the driver has not come to its failpoint")
    return run


def run_through_an_outage(project: Project, folder: Path, server: str, files: int) -> None:
    """Run until all files are read, while a server of the local stack is killed, and away for half a minute."""
    run = project.start("run", "--json", "--no-page", *SLOWLY)
    run.await_event("batch_committed", count=2)
    _kill_server(folder, server)
    # What is tried is an outage of this length: nothing is awaited.
    threading.Event().wait(30)
    start(folder, server)

    def has_read_all() -> bool:
        # A file that was listed when the server went away is in one batch with the next one.
        return all(
            any(
                batch["sources"][0]["endOffset"] == {"logOffset": files - 1}
                for batch in run.list_events("batch_committed", query=query)
            )
            for query in ("orders", "totals")
        )

    until(has_read_all, 300, "the queries have not read all files")
    run.signal(signal.SIGTERM)

    assert run.ends() == 0, run.words()


def refuse_a_second_driver(project: Project, *others: tuple[str, ...]) -> list[Done]:
    """See a second driver refused while a first one runs, and return what other commands say meanwhile."""
    first = project.start("run", "--json", "--no-page")
    first.await_event("query_started", count=2)

    second = project.call("run", "--until-caught-up", "--no-page")
    answers = [project.call(*words) for words in others]

    assert second.code == 3
    assert "is held by 'remote.orders' (process " in second.err
    first.signal(signal.SIGTERM)
    assert first.ends() == 0, first.words()
    return answers
