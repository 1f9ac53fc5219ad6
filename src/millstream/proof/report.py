"""What a proof found: a table for a person, JSON for a program."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millstream.proof.scene import Tally
    from millstream.runtime.batch.judge import Verdict


@dataclass
class Report:
    """One proof. `rows` were fed to the sources, `seconds` is what all of it took."""

    pipeline: str
    seed: int
    tally: Tally
    verdicts: list[Verdict] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    rows: int = 0
    seconds: float = 0.0

    @property
    def fine(self) -> bool:
        """Does every sink hold what it must, as far as its rows can be compared, and can those of one?"""
        compared = any(verdict.compared for verdict in self.verdicts)
        return compared and all(verdict.fine for verdict in self.verdicts)

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "pipeline": self.pipeline,
            "seed": self.seed,
            "fine": self.fine,
            "kills": self.tally.kills.total(),
            "kills_by_point": dict(sorted(self.tally.kills.items())),
            "not_reached": dict(sorted(self.tally.outlived.items())),
            "faults": dict(sorted(self.tally.faults.items())),
            "starts": self.tally.starts,
            "seconds_by_kill": [round(one, 1) for one in self.tally.seconds],
            "batches_replayed": self.tally.replayed,
            "commits_deleted": self.tally.removed,
            "rows_fed": self.rows,
            "seconds": round(self.seconds, 1),
            "sinks": [{**asdict(verdict), "fine": verdict.fine} for verdict in self.verdicts],
            "notes": list(self.notes),
        }

    def kills(self) -> tuple[list[str], list[list[object]]]:
        """Names and rows of the table of kills."""
        return ["killed at", "kills"], [[point, times] for point, times in sorted(self.tally.kills.items())]

    def sinks(self) -> tuple[list[str], list[list[object]]]:
        """Names and rows of the table of sinks."""
        names = ["query", "sink", "mode", "promised", "rows", "missing", "doubled", "different", "verdict"]
        return names, [
            [
                one.query,
                one.sink,
                one.mode,
                one.guarantee,
                one.rows,
                one.missing,
                one.doubled,
                one.different,
                _verdict(one),
            ]
            for one in self.verdicts
        ]

    def remarks(self) -> list[str]:
        """Keys of what is wrong, and what else is to be said of a sink or of the copy, a line each."""
        lines = []
        for one in self.verdicts:
            lines += [f"{one.query} {one.sink}: {kind}: {'; '.join(keys)}" for kind, keys in one.keys.items()]
            lines += [f"{one.query} {one.sink}: {one.note}"] if one.note else []
        return [*lines, *self.notes]

    def story(self) -> str:
        """The figures in a sentence or two."""
        tally = self.tally
        told = (
            f"{tally.kills.total()} kills, {tally.starts} starts, {tally.replayed} batches delivered again, "
            f"{tally.removed} commits deleted, {self.rows:,} rows fed, {self.seconds:.0f} s, seed {self.seed}"
        )
        if tally.faults:
            told += f"; survived {', '.join(sorted(tally.faults))}"
        if tally.outlived:
            told += f"; {tally.outlived.total()} aims were not reached, and a random moment took their place"
        return told


def _verdict(one: Verdict) -> str:
    if not one.compared:
        return "not compared"
    if one.unproven:
        return "NOTHING PROVEN"
    return "as promised" if one.fine else "BROKEN"
