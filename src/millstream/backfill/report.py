"""What a backfill found and did, sink by sink: a table for a person, JSON for a program."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.connectors.cut import Cut
    from millstream.runtime.batch.differences import Difference

# A value longer than this is cut in a sentence; JSON has all of it.
_SHOWN = 80


@dataclass
class Outcome:
    """One sink held against the batch answer. Counts are of rows of the range.

    `wanted` are in the answer and `held` in the sink, before anything was written. `added`, `changed` and `deleted`
    were written, or would be where nothing is.
    """

    query: str
    sink: str
    cut: Cut
    wanted: int = 0
    held: int = 0
    missing: int = 0
    surplus: int = 0
    different: int = 0
    added: int = 0
    changed: int = 0
    deleted: int = 0
    differences: list[Difference] = field(default_factory=list)
    compared: bool = True
    """False for a sink whose rows cannot be read back."""

    @property
    def fine(self) -> bool:
        """Does the sink hold the answer's rows and no others?"""
        return self.compared and not (self.missing or self.surplus or self.different)

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        cut = self.cut
        return {
            "query": self.query,
            "sink": self.sink,
            "column": ".".join(cut.path) or None,
            "from": cut.start.isoformat() if cut.start else None,
            "to": cut.end.isoformat() if cut.end else None,
            "compared": self.compared,
            "wanted": self.wanted,
            "held": self.held,
            "missing": self.missing,
            "surplus": self.surplus,
            "different": self.different,
            "added": self.added,
            "changed": self.changed,
            "deleted": self.deleted,
            "differences": [one.plain() for one in self.differences],
        }


@dataclass
class Report:
    """All sinks of one backfill. `read` are the rows read by query and source, counted by a dry run only."""

    pipeline: str
    outcomes: list[Outcome] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    read: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def fine(self) -> bool:
        """Does every sink that could be compared hold the answer?"""
        return all(one.fine for one in self.outcomes if one.compared)

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "pipeline": self.pipeline,
            "fine": self.fine,
            "sinks": [one.plain() for one in self.outcomes],
            "read": self.read,
            "notes": self.notes,
        }

    def table(self, *, compare: bool) -> tuple[list[str], list[list[object]]]:
        """Names and rows of the table: what was compared, or what is written."""
        found = ["missing", "surplus", "different"] if compare else ["added", "changed", "deleted"]
        names = ["query", "sink", "in the answer", "in the sink", *found]
        return names, [
            [one.query, one.sink, one.wanted, one.held, *(getattr(one, name) for name in found)]
            for one in self.outcomes
            if one.compared
        ]

    def lines(self) -> Iterator[str]:
        """Every difference that is told, a line each."""
        for outcome in self.outcomes:
            for one in outcome.differences:
                yield f"{outcome.query} {outcome.sink}: {_line(one)}"


def _line(one: Difference) -> str:
    key = ", ".join(f"{name} = {_short(value)}" for name, value in one.key.items())
    times = f" ({one.times} rows)" if one.times > 1 else ""
    differ = "; ".join(
        f"{name} is {_short(held)}, the answer has {_short(wanted)}"
        for name, (held, wanted) in one.columns.items()
    )
    return f"{one.kind}: {key}{times}" + (f": {differ}" if differ else "")


def _short(value: str | None) -> str:
    if value is None:
        return "NULL"
    return value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
