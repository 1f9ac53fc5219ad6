"""All joins of two inputs: which sides are streams, the kind, the watermarks, the condition, what follows, the mode.

```
lefts   12:00 a  12:05 b  12:20 c  | 12:40 d | 18:00 closing row
rights  12:03 a  12:30 b  12:21 e  | 12:41 d | 18:00 closing row
```

No row is late, so a stream must give what a batch gives. The closing rows move the watermark past all others; of them
nothing is asked.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields
from itertools import combinations, product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

DAY = "2026-01-01 "
CLOSING = 90
"""The keys of closing rows begin here."""
# Key, value and time of each row, by the batch that brings it.
LEFTS = (
    ((1, "a", "12:00:00"), (2, "b", "12:05:00"), (3, "c", "12:20:00")),
    ((4, "d", "12:40:00"),),
    ((CLOSING, "x", "18:00:00"),),
)
RIGHTS = (
    ((1, "A", "12:03:00"), (5, "E", "12:21:00")),
    ((2, "B", "12:30:00"), (4, "D", "12:41:00"), (4, "DD", "12:45:00")),
    ((CLOSING + 1, "X", "18:00:00"),),
)
KINDS = {
    "inner": "JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "full": "FULL JOIN",
    "semi": "LEFT SEMI JOIN",
    "anti": "LEFT ANTI JOIN",
}
CONDITIONS = {
    "key": "l.k = r.k",
    "range": "l.k = r.k AND r.t BETWEEN l.t AND l.t + INTERVAL 10 MINUTES",
    "window": "l.k = r.k AND l.span = r.span",
}
STREAMS = {"both": ("left", "right"), "left": ("left",), "right": ("right",)}


@dataclass(frozen=True)
class Join:
    """One combination."""

    streams: str
    """Which inputs are streams: `left`, `right` or `both`."""
    kind: str
    watermark: str
    """Which of them have one: `none`, `left`, `right` or `both`."""
    condition: str
    result: str
    """`rows` of the join, or `counts` of them by key."""
    mode: str

    @property
    def view(self) -> str:
        """The view's name."""
        return f"{self.streams}_{self.kind}_{self.watermark}_{self.condition}_{self.result}"

    @property
    def query(self) -> str:
        """The query's name."""
        return f"{self.view}_{self.mode}"

    @property
    def sql(self) -> str:
        """The view."""
        one_sided = self.kind in ("semi", "anti")
        columns = "l.k AS lk, l.v AS lv" + ("" if one_sided else ", r.k AS rk, r.v AS rv")
        left, right = (f"{side}_{self._input(side)}" for side in ("left", "right"))
        key, source = ("l.k", f"{left} l {KINDS[self.kind]} {right} r ON {CONDITIONS[self.condition]}")
        if self.result == "rows":
            return f"SELECT {columns} FROM {source}"
        key = "l.k" if one_sided else "coalesce(l.k, r.k)"
        return f"SELECT {key} AS k, count(*) AS n FROM {source} GROUP BY {key}"

    def _input(self, side: str) -> str:
        if side not in STREAMS[self.streams]:
            return "table"
        return "timed" if self.watermark in (side, "both") else "untimed"


def walk() -> list[Join]:
    """All combinations; a table has no watermark."""
    joins = []
    for streams, sides in STREAMS.items():
        watermarks = ("none", *sides, *(("both",) if len(sides) > 1 else ()))
        results = (
            *product(("rows",), ("append", "update", "complete")),
            *product(("counts",), ("update", "complete")),
        )
        for kind, watermark, condition, (result, mode) in product(KINDS, watermarks, CONDITIONS, results):
            joins.append(Join(streams, kind, watermark, condition, result, mode))
    return joins


def covering(joins: Iterable[Join], size: int) -> list[Join]:
    """A few of them, in which any `size` values of as many dimensions meet that meet in one of all."""
    numbers: dict[tuple[tuple[str, str], ...], int] = {}
    left = {
        join: frozenset(
            numbers.setdefault(combination, len(numbers)) for combination in combinations(_values(join), size)
        )
        for join in joins
    }
    expected = set(numbers.values())
    chosen = []
    while expected:
        best = max(left, key=lambda join: len(expected & left[join]))
        chosen.append(best)
        expected -= left.pop(best)
    return chosen


def _values(join: Join) -> list[tuple[str, str]]:
    return [(field.name, getattr(join, field.name)) for field in fields(join)]


def spec(joins: Iterable[Join]) -> str:
    """A pipeline with a query for each combination."""
    joins = list(joins)
    lines = ["name: joins", "sources:"]
    for side in ("left", "right"):
        for kind in ("timed", "untimed", "table"):
            lines += [
                f"  {side}_{kind}_rows:",
                f"    json: {{path: {side}s, max_files_per_trigger: 1}}"
                if kind != "table"
                else f"    json: {side}s",
                "    schema: {k: int, v: string, t: timestamp}",
                "    on_malformed: fail",
            ]
            lines += ["    watermark: {event_time: t, delay_threshold: 5 minutes}"] if kind == "timed" else []
            lines += ["    static: true"] if kind == "table" else []
    lines += ["views:"]
    for side, kind in product(("left", "right"), ("timed", "untimed", "table")):
        rows = f"SELECT k, v, t, window(t, '15 minutes') AS span FROM {side}_{kind}_rows"
        lines += [f"  {side}_{kind}: {rows}"]
    lines += [f"  {view}: {sql}" for view, sql in {join.view: join.sql for join in joins}.items()]
    lines += ["queries:"]
    for join in joins:
        lines += [f"  {join.query}: {{from: {join.view}, output_mode: {join.mode}, to: {{console: {{}}}}}}"]
    return "\n".join([*lines, ""])


def write_rows(folder: Path) -> None:
    """The inputs, a file a batch, in the order of their times on disk."""
    for side, batches in (("left", LEFTS), ("right", RIGHTS)):
        inside = folder / f"{side}s"
        inside.mkdir()
        for number, rows in enumerate(batches):
            file = inside / f"{number}.json"
            lines = [json.dumps({"k": key, "v": value, "t": DAY + time}) for key, value, time in rows]
            file.write_text("\n".join(lines), encoding="utf-8")
            # Spark takes files in the order of these.
            os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
