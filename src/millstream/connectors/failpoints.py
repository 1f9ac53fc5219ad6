"""Named moments at which a proof makes a run die, fail or stand still; nothing happens unless they are armed."""

from __future__ import annotations

import os
import re
import signal
import threading
from dataclasses import dataclass
from functools import cache

from millstream.diagnostics.failure import Outage, WrongUse

VARIABLE = "MILLSTREAM_FAILPOINTS"
"""`POINT=ACTION@N`, several with commas between: at the N-th time that the point is reached in a process."""

POINTS = {
    "batch.begun": "its offsets are written, and no sink has it",
    "batch.delivered": "every sink has it, and Spark's commit is not written",
    "letters.kept": "its dead letters are kept",
    "rows.kept": "a sink refused some of its rows, and they are kept as dead letters; the rest is not written",
    "aside.kept": "a sink refused it, and it is set aside",
    "aside.delivered": "it was set aside and has been delivered, and still waits by its folder",
    "postgres.staged": "its rows are ready, and the transaction is not begun",
    "postgres.open": "its rows are in the table, and the transaction is not committed",
    "postgres.committed": "the transaction is committed, and nobody has been told",
    "delta.before": "its rows are known, and the table's log does not have it",
    "delta.committed": "the table's log has it, and nobody has been told",
    "kafka.before": "its records are known, and none is sent",
    "kafka.sent": "its records are sent, and the transaction is not committed",
    "kafka.committed": "the transaction is committed, and nobody has been told",
    "files.staged": "its files are written where no reader looks",
    "files.committed": "its manifest is there and no file is in its place, or its folder is in its place",
    "files.published": "every file is in its place, and nobody has been told",
}
"""Every point by name, and what is true of a batch at that moment."""

ACTIONS = ("kill", "raise", "hang", "stop")
# As long as a stopped machine might be away; whoever armed it kills the process before.
HANG = 600.0

_ARMED = re.compile(r"(?P<point>[a-z]+\.[a-z]+)=(?P<action>[a-z]+)(?:@(?P<time>[1-9]\d*))?")
_counts: dict[str, int] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class Armed:
    """What happens at a point, and the how-manieth time it is reached."""

    action: str
    time: int


def reach(point: str) -> None:
    """Say that this moment has come. Costs a look into a dict where nothing is armed."""
    armed = _armed(os.environ.get(VARIABLE, ""))
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
            # It goes on from here at SIGCONT, not knowing how long it was away.
            os.kill(os.getpid(), signal.SIGSTOP)
        case "hang":
            threading.Event().wait(HANG)
        case _:
            raise Outage(f"failed on purpose at {point}", f"unset {VARIABLE}")


@cache
def _armed(text: str) -> dict[str, Armed]:
    """The armed points. Raises `WrongUse` for a point or an action that is not there."""
    armed = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        read = _ARMED.fullmatch(part)
        if read is None or read["point"] not in POINTS or read["action"] not in ACTIONS:
            raise WrongUse(
                f"{VARIABLE}: '{part}' is no POINT=ACTION@N",
                f"points: {', '.join(POINTS)}; actions: {', '.join(ACTIONS)}",
            )
        armed[read["point"]] = Armed(read["action"], int(read["time"] or 1))
    return armed
