"""The report of a backfill for each sink: a table for people, JSON for programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.connectors.api.values.event_time_range import EventTimeRange
    from millstream.engine.batch.table_diff import RowDifference

# Longer values are truncated in text output; JSON contains them in full.
_MAX_LENGTH = 80


@dataclass
class SinkOutcome:
    """Comparison of one sink with the batch result. All counts are rows in the range.

    `expected` rows are in the batch result and `stored` rows in the sink, before anything was written. `added`,
    `changed` and `deleted` rows were written, or would be written if this run does not write.
    """

    query: str
    sink: str
    time_range: EventTimeRange
    expected: int = 0
    stored: int = 0
    missing: int = 0
    surplus: int = 0
    different: int = 0
    added: int = 0
    changed: int = 0
    deleted: int = 0
    differences: list[RowDifference] = field(default_factory=list)
    is_compared: bool = True
    """False if the sink's rows cannot be read back."""

    @property
    def is_equal(self) -> bool:
        """Whether the sink contains exactly the rows of the batch result."""
        return self.is_compared and not (self.missing or self.surplus or self.different)

    def plain(self) -> dict[str, Any]:
        """Return the comparison as JSON data."""
        time_range = self.time_range
        return {
            "query": self.query,
            "sink": self.sink,
            "column": ".".join(time_range.path) or None,
            "from": time_range.start.isoformat() if time_range.start else None,
            "to": time_range.end.isoformat() if time_range.end else None,
            "compared": self.is_compared,
            "wanted": self.expected,
            "held": self.stored,
            "missing": self.missing,
            "surplus": self.surplus,
            "different": self.different,
            "added": self.added,
            "changed": self.changed,
            "deleted": self.deleted,
            "differences": [difference.plain() for difference in self.differences],
        }


@dataclass
class BackfillReport:
    """All sinks of one backfill. `rows_read` counts the rows read by query and source, only in a dry run."""

    pipeline: str
    outcomes: list[SinkOutcome] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rows_read: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def is_equal(self) -> bool:
        """Whether every sink that could be compared contains exactly the batch result."""
        return all(outcome.is_equal for outcome in self.outcomes if outcome.is_compared)

    def to_json(self) -> dict[str, Any]:
        """Return the whole report as JSON data."""
        return {
            "pipeline": self.pipeline,
            "fine": self.is_equal,
            "sinks": [outcome.plain() for outcome in self.outcomes],
            "read": self.rows_read,
            "notes": self.notes,
        }

    def table(self, *, compare: bool) -> tuple[list[str], list[list[object]]]:
        """Return the column names and rows of the table: of a comparison, or of the rows written."""
        count_names = ["missing", "surplus", "different"] if compare else ["added", "changed", "deleted"]
        names = ["query", "sink", "in the result", "in the sink", *count_names]
        return names, [
            [
                outcome.query,
                outcome.sink,
                outcome.expected,
                outcome.stored,
                *(getattr(outcome, name) for name in count_names),
            ]
            for outcome in self.outcomes
            if outcome.is_compared
        ]

    def lines(self) -> Iterator[str]:
        """Yield one line for each reported difference."""
        for outcome in self.outcomes:
            for difference in outcome.differences:
                yield f"{outcome.query} {outcome.sink}: {_difference_line(difference)}"


def _difference_line(difference: RowDifference) -> str:
    key = ", ".join(f"{name} = {_short(value)}" for name, value in difference.key.items())
    times = f" ({difference.times} rows)" if difference.times > 1 else ""
    details = "; ".join(
        f"{name} is {_short(actual)}, the result has {_short(expected)}"
        for name, (actual, expected) in difference.columns.items()
    )
    return f"{difference.kind}: {key}{times}" + (f": {details}" if details else "")


def _short(value: str | None) -> str:
    if value is None:
        return "NULL"
    return value if len(value) <= _MAX_LENGTH else f"{value[:_MAX_LENGTH]}…"
