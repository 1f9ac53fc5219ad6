"""Follow the batch that a query runs now, and split the time of the last one by its parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.dashboard.state import api_schema


@dataclass
class RunningBatch:
    """A batch whose rows are on their way to the sinks, from its start to its commit. Times in seconds since 1970."""

    number: int
    began: float
    sinks: list[str] = field(default_factory=list)
    written: dict[str, float] = field(default_factory=dict)
    """The seconds that each sink took, as far as it has the batch."""

    def describe_sinks(self) -> str:
        """Return which sinks have the batch and which do not, or nothing before the first has it."""
        waiting = [sink for sink in self.sinks if sink not in self.written]
        parts = [f"{', '.join(self.written)} written"] if self.written else []
        if waiting:
            parts.append(f"{', '.join(waiting)} not yet")
        return "; ".join(parts)


def split_duration(
    duration_ms: Mapping[str, int], written: Mapping[str, float], state_ms: int
) -> list[api_schema.BatchPart]:
    """Return the parts of a batch's duration in seconds, in order. They add up to the whole.

    The part of the first sink contains reading and computing, which Spark does while a sink writes. Without figures
    of sinks, all of that is one part. `state` is the time that all tasks together spent in the state store: it runs
    inside the other parts and is no part of the sum.
    """
    seconds = {name: milliseconds / 1000 for name, milliseconds in duration_ms.items()}
    total = seconds.get("triggerExecution", sum(seconds.values()))
    offsets = seconds.get("latestOffset", 0.0) + seconds.get("getBatch", 0.0)
    commit = seconds.get("walCommit", 0.0) + seconds.get("commitOffsets", 0.0)
    planning = seconds.get("queryPlanning", 0.0)
    work = seconds.get("addBatch", 0.0)
    parts: list[tuple[api_schema.PartKind, str, float]] = [
        ("source", "asking the sources", offsets),
        ("plan", "planning", planning),
    ]
    left = work
    for sink, took in written.items():
        took = min(took, left)
        left -= took
        parts.append(("sink", sink, took))
    parts.append(("work", "reading, computing and writing" if not written else "rest of the work", left))
    parts.append(("commit", "checkpoint", commit))
    parts.append(("other", "other", total - offsets - planning - work - commit))
    shown = [_part(kind, name, took) for kind, name, took in parts if round(took, 3) > 0 or kind == "sink"]
    if state_ms:
        shown.append(_part("state", "state store, time of all tasks", state_ms / 1000))
    return shown


def _part(kind: api_schema.PartKind, name: str, seconds: float) -> api_schema.BatchPart:
    return {"kind": kind, "name": name, "seconds": round(max(0.0, seconds), 3)}


def running_json(batch: RunningBatch | None, now: float) -> api_schema.Running | None:
    """Convert the running batch to the page's JSON."""
    if batch is None:
        return None
    written: list[Any] = list(batch.written)
    return {
        "batch": batch.number,
        "seconds": round(max(0.0, now - batch.began), 1),
        "sinks": batch.sinks,
        "written": written,
    }
