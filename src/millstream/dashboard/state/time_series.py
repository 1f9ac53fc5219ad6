"""Store the history of a query's plots and of its lag, thinned so that memory stays bounded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from millstream.dashboard.state import timestamps
from millstream.dashboard.state.api_schema import PHASES

# 4000 points are an hour at one batch per second. Beyond that, every second point of the older half is dropped, so
# that some 4000 points show a day, densest at its end. Ten queries use 10 MB.
MOST = 4000
# Maximum number of points in a response, about the width of a plot in pixels.
SHOWN = 2000
# One value of a history stands for at most this part of its age. So the first quarter of any time, however long, has
# some 60 values, and a month takes some 2,500.
RESOLUTION = 200

Point = dict[str, Any]
History = list[tuple[float, int]]
"""Times and the values of a figure."""


def plot_point(at: float, data: dict[str, Any]) -> Point:
    """Convert a `batch_committed` event to a point of the plots, with times and durations in seconds."""
    phases = {name: data["duration_ms"].get(name, 0) / 1000 for name in PHASES[:-1]}
    total = data["duration_ms"].get("triggerExecution", 0) / 1000
    phases["other"] = round(max(0.0, total - sum(phases.values())), 3)
    return {
        "time": at,
        "batch": data["batch"],
        "input_rate": data["input_rate"],
        "processed_rate": data["processed_rate"],
        "phases": phases,
        "newest": timestamps.parse_or_none(data["newest"]),
        "watermark": timestamps.parse_or_none(data["watermark"]),
        "state_rows": data["state_rows"],
        "state_bytes": data["state_bytes"],
    }


@dataclass
class Series:
    """The points of one query, in the order of their times."""

    points: list[Point] = field(default_factory=list)

    def add(self, point: Point) -> None:
        """Add a point; thin the older half if there are too many."""
        self.points.append(point)
        if len(self.points) > MOST:
            half = MOST // 2
            self.points = self.points[:half:2] + self.points[half:]

    def as_json(self, since: float) -> dict[str, Any]:
        """Return at most `SHOWN` points after a time as columns, always with the last one."""
        selected = [item for item in self.points if item["time"] >= since]
        if len(selected) > SHOWN:
            step = -(-len(selected) // SHOWN)
            selected = selected[(len(selected) - 1) % step :: step]
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
        columns: dict[str, Any] = {name: [item[name] for item in selected] for name in plain}
        columns["phases"] = {name: [item["phases"][name] for item in selected] for name in PHASES}
        return columns


def record_value(history: History, at: float, value: int) -> None:
    """Add a value to a history; where there are too many, replace neighbours by their mean."""
    history.append((at, value))
    if len(history) > MOST:
        history[:] = _average(history, at)


def _average(history: History, now: float) -> History:
    """Return the means of neighbouring values, at the time of the first of them: the older, the more of them."""
    averaged: History = []
    group = history[:1]
    for point in history[1:]:
        began = group[0][0]
        if point[0] - began > (now - began) / RESOLUTION:
            averaged.append((began, _mean(group)))
            group = []
        group.append(point)
    return [*averaged, (group[0][0], _mean(group))]


def _mean(group: History) -> int:
    return round(sum(value for _, value in group) / len(group))
