"""Failpoints at which a proof makes a run die, fail or hang. They do nothing unless they are armed."""

from __future__ import annotations

import os
import re
import signal
import threading
from dataclasses import dataclass
from functools import cache

from millstream.connectors import registry
from millstream.diagnostics.failure import InvalidInput, Outage

VARIABLE = "MILLSTREAM_FAILPOINTS"
"""Variable with `POINT=ACTION@N`, several separated by commas, for the N-th time a process hits the point."""

POINTS = {
    "batch.begun": "its offsets are written, and no sink has it",
    "batch.delivered": "every sink has it, and Spark's commit is not written",
    "letters.kept": "its dead letters are written",
    "rows.kept": "a sink rejected some of its rows, and they are written as dead letters; the rest is not written",
    "aside.kept": "a sink rejected it, and it is spooled",
    "aside.delivered": "it was spooled and has been delivered, and its spool folder still exists",
    "renewal.prepared": "no batch runs: the new checkpoint of a query is prepared",
    "renewal.replaced": "no batch runs: that checkpoint is in its place, and the sinks' rows are not yet replaced",
    "renewal.filled": "no batch runs: the rows in the sinks are replaced, and that is not yet recorded",
}
"""Failpoints that every run passes, with the state of a batch at that moment; each system adds its own."""

ACTIONS = ("kill", "raise", "hang", "stop")
# As long as a stopped machine may be away; the test that armed it kills the process earlier.
HANG = 600.0

_ARMED = re.compile(r"(?P<point>[a-z]+\.[a-z]+)=(?P<action>[a-z]+)(?:@(?P<time>[1-9]\d*))?")
_counts: dict[str, int] = {}
_lock = threading.Lock()


def arm(text: str) -> None:
    """Arm failpoints in this process, as in the variable; the next pass of each counts as its first."""
    with _lock:
        _counts.clear()
        os.environ[VARIABLE] = text


@dataclass(frozen=True)
class ArmedFailpoint:
    """The action to take the N-th time a failpoint is hit."""

    action: str
    time: int


def hit_failpoint(point: str) -> None:
    """Hit a failpoint. Costs a dict lookup if nothing is armed."""
    armed = _parse_armed(os.environ.get(VARIABLE, ""))
    if point not in armed:
        return
    with _lock:
        _counts[point] = _counts.get(point, 0) + 1
        if _counts[point] != armed[point].time:
            return
    match armed[point].action:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop":
            # The process resumes here at SIGCONT without knowing how long it was stopped.
            os.kill(os.getpid(), signal.SIGSTOP)
        case "hang":
            threading.Event().wait(HANG)
        case _:
            raise Outage(f"failed on purpose at {point}", f"unset {VARIABLE}")


@cache
def known_failpoints() -> dict[str, str]:
    """Return the failpoints of every run and of every system, with the state of a batch at that moment."""
    own = [system.failpoints for system in registry.systems().values()]
    return POINTS | {point: state for points in own for point, state in points.items()}


@cache
def _parse_armed(text: str) -> dict[str, ArmedFailpoint]:
    """Parse the armed failpoints. Raises `InvalidInput` for an unknown point or action."""
    armed: dict[str, ArmedFailpoint] = {}
    if not text:
        return armed
    points = known_failpoints()
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = _ARMED.fullmatch(part)
        if match is None or match["point"] not in points or match["action"] not in ACTIONS:
            raise InvalidInput(
                f"{VARIABLE}: '{part}' is not POINT=ACTION@N",
                f"points: {', '.join(points)}; actions: {', '.join(ACTIONS)}",
            )
        armed[match["point"]] = ArmedFailpoint(match["action"], int(match["time"] or 1))
    return armed
