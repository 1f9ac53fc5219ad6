"""The history of a query's plots: one point a batch, thinned as it grows, so that memory has a bound."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from millstream.dashboard import moments
from millstream.dashboard.shapes import PHASES

# 4000 points of a batch a second are an hour. Beyond it every second point of the older half goes: a day of them
# is then told by some 4000 points, dense at its end. Ten queries keep 10 MB.
MOST = 4000
# A plot is about so many pixels wide; an answer has no more points.
SHOWN = 2000

Point = dict[str, Any]


def point(at: float, data: dict[str, Any]) -> Point:
    """The figures of one `batch_committed` event as its plots have them: times and durations in seconds."""
    phases = {name: data["duration_ms"].get(name, 0) / 1000 for name in PHASES[:-1]}
    whole = data["duration_ms"].get("triggerExecution", 0) / 1000
    phases["other"] = round(max(0.0, whole - sum(phases.values())), 3)
    return {
        "time": at,
        "batch": data["batch"],
        "input_rate": data["input_rate"],
        "processed_rate": data["processed_rate"],
        "phases": phases,
        "newest": moments.perhaps(data["newest"]),
        "watermark": moments.perhaps(data["watermark"]),
        "state_rows": data["state_rows"],
        "state_bytes": data["state_bytes"],
    }


@dataclass
class Series:
    """The points of one query, in the order of their times."""

    points: list[Point] = field(default_factory=list)

    def add(self, one: Point) -> None:
        """Add a point; the older half is thinned when there are too many."""
        self.points.append(one)
        if len(self.points) > MOST:
            half = MOST // 2
            self.points = self.points[:half:2] + self.points[half:]

    def told(self, since: float) -> dict[str, Any]:
        """The points after a time as columns, at most `SHOWN` of them; the last is always there."""
        found = [one for one in self.points if one["time"] >= since]
        if len(found) > SHOWN:
            step = -(-len(found) // SHOWN)
            found = found[(len(found) - 1) % step :: step]
        plain = (
            "time",
            "batch",
            "input_rate",
            "processed_rate",
            "newest",
            "watermark",
            "state_rows",
            "state_bytes",
        )
        columns: dict[str, Any] = {name: [one[name] for one in found] for name in plain}
        columns["phases"] = {name: [one["phases"][name] for one in found] for name in PHASES}
        return columns
