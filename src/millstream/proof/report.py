"""The report of a proof: tables for people, JSON for programs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.proof.kill_plan import KilledProcess

if TYPE_CHECKING:
    from millstream.engine.batch.sink_comparison import Verdict
    from millstream.proof.environment import ProofCounts


@dataclass
class ProofReport:
    """The results of one proof. `rows` is the number of rows fed, `seconds` the total duration."""

    pipeline: str
    seed: int
    tally: ProofCounts
    verdicts: list[Verdict] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    rows: int = 0
    seconds: float = 0.0

    @property
    def is_equal(self) -> bool:
        """Whether at least one sink could be compared, and every sink contains what its guarantee requires."""
        compared = any(verdict.is_compared for verdict in self.verdicts)
        return compared and all(verdict.is_equal for verdict in self.verdicts)

    def to_json(self) -> dict[str, Any]:
        """Return the whole report as JSON data."""
        return {
            "pipeline": self.pipeline,
            "seed": self.seed,
            "fine": self.is_equal,
            "kills": self.tally.kills.total(),
            "kills_by_point": dict(sorted(self.tally.kills.items())),
            "kills_by_process": self._by_process(),
            "not_reached": dict(sorted(self.tally.missed_failpoints.items())),
            "faults": dict(sorted(self.tally.faults.items())),
            "backfills": self.tally.backfills,
            "rows_backfilled": dict(sorted(self.tally.backfilled.items())),
            "starts": self.tally.starts,
            "seconds_by_kill": [round(kill_seconds, 1) for kill_seconds in self.tally.seconds],
            "batches_replayed": self.tally.replayed,
            "commits_deleted": self.tally.removed,
            "rows_fed": self.rows,
            "seconds": round(self.seconds, 1),
            "sinks": [_sink_json(verdict) for verdict in self.verdicts],
            "notes": list(self.notes),
        }

    def kills(self) -> tuple[list[str], list[list[object]]]:
        """Return the column names and rows of the table of kills."""
        alone, tally = (KilledProcess.PYTHON, KilledProcess.JVM), self.tally
        return ["killed at", "kills", *(f"{process} alone" for process in alone)], [
            [point, times, *(tally.victims[point, process] for process in alone)]
            for point, times in sorted(tally.kills.items())
        ]

    def sinks(self) -> tuple[list[str], list[list[object]]]:
        """Return the column names and rows of the table of sinks."""
        names = ["query", "sink", "mode", "promised", "rows", "missing", "doubled", "different", "verdict"]
        return names, [
            [
                verdict.query,
                verdict.sink,
                verdict.mode,
                verdict.guarantee,
                verdict.rows,
                verdict.missing,
                verdict.doubled,
                verdict.different,
                _verdict(verdict),
            ]
            for verdict in self.verdicts
        ]

    def _by_process(self) -> dict[str, int]:
        """Return the number of kills by killed process."""
        counts = dict.fromkeys(map(str, KilledProcess), 0)
        for (_, victim), times in self.tally.victims.items():
            counts[victim] += times
        return counts

    def remarks(self) -> list[str]:
        """Return a line for the keys of each kind of defect, and for each note on a sink or the copy."""
        lines = []
        for verdict in self.verdicts:
            lines += [
                f"{verdict.query} {verdict.sink}: {kind}: {'; '.join(keys)}"
                for kind, keys in verdict.keys.items()
            ]
            lines += [f"{verdict.query} {verdict.sink}: {verdict.note}"] if verdict.note else []
        return [*lines, *self.notes]

    def story(self) -> str:
        """Summarize the figures in one or two sentences."""
        tally = self.tally
        summary = (
            f"{tally.kills.total()} kills, {tally.starts} starts, {tally.replayed} batches delivered again, "
            f"{tally.removed} commits deleted, {self.rows:,} rows fed, {self.seconds:.0f} s, seed {self.seed}"
        )
        if tally.faults:
            summary += f"; survived {', '.join(sorted(tally.faults))}"
        if tally.backfills:
            summary += (
                f"; {tally.backfills} backfills during the kills restored {tally.backfilled.total():,} deleted "
                "rows"
            )
        if tally.missed_failpoints:
            summary += (
                f"; {tally.missed_failpoints.total()} failpoints were not reached and were replaced by "
                "random moments"
            )
        return summary


def _verdict(verdict: Verdict) -> str:
    if not verdict.is_compared:
        return "not compared"
    if verdict.is_unproven:
        return "NOTHING PROVEN"
    return "as promised" if verdict.is_equal else "BROKEN"


def _sink_json(verdict: Verdict) -> dict[str, Any]:
    fields = asdict(verdict)
    unproven, compared = fields.pop("is_unproven"), fields.pop("is_compared")
    return {**fields, "unproven": unproven, "compared": compared, "fine": verdict.is_equal}
