"""A run of the e-commerce project that a signal ends while records are left to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from acceptance.oracle import STREAMS, differences
from acceptance.project import last

if TYPE_CHECKING:
    from collections.abc import Callable

    from acceptance.project import Project, Running

SMALL_BATCHES = (
    "--set",
    "defaults.trigger=1 seconds",
    *(
        word
        for source in STREAMS
        for word in ("--set", f"sources.{source}.kafka.max_offsets_per_trigger=200")
    ),
)


@dataclass(frozen=True)
class InterruptedRun:
    """A run that has ended, and what it left, which a later run changes."""

    running: Running
    code: int
    batches: list[tuple[int, int]]
    """The last batch in the offsets of each checkpoint, and in its commits."""
    missing: str
    """What the tables lack."""


def interrupt(project: Project, send: Callable[[Running], object]) -> InterruptedRun:
    """Start a run, send it a signal when each query has committed a batch, and wait for its end."""
    running = project.start("run", "--json", *SMALL_BATCHES)
    running.await_event("batch_committed", 2, query="funnel")
    # It begins after the other's first batch, and its own first one takes long.
    running.await_event("batch_committed", 1, query="purchases")
    send(running)
    return InterruptedRun(
        running,
        running.ends(120),
        [(last(path / "offsets"), last(path / "commits")) for path in project.checkpoints()],
        differences(project.expected_tables(), project.stored_tables()),
    )


def assert_batches_are_finished(run: InterruptedRun) -> None:
    """Check that a run has ended well, after the batches that it had begun and before it had read everything."""
    assert run.code == 0, run.running.words()
    assert len(run.batches) == 2
    for planned, committed in run.batches:
        assert planned == committed >= 0
    assert run.running.list_events("stopping")
    assert run.running.events[-1]["event"] == "run_stopped"
    assert run.missing, "all was read before the signal came"
