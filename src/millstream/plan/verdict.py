"""Verdicts on a restart, from harmless to final.

Spark writes nothing from a checkpoint that it refuses, so that `START_AFRESH` covers whatever else has changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class RestartVerdict(StrEnum):
    """The result of a restart on an existing checkpoint."""

    CONTINUES = "continues"
    """The query resumes, and its rows are right."""
    CONTINUES_WITH_NOTE = "continues_with_note"
    """The query resumes, and its rows are right under what the note says."""
    REPARTITION = "repartition"
    """The query resumes, but the new number of state partitions has no effect until the state is repartitioned."""
    CANNOT_TELL = "cannot_tell"
    """Too little is recorded about the checkpoint."""
    SILENTLY_WRONG = "silently_wrong"
    """Spark accepts the checkpoint, and the rows are wrong."""
    START_AFRESH = "start_afresh"
    """Spark refuses the checkpoint: the query needs a new one."""

    @property
    def is_refused(self) -> bool:
        """Whether a run refuses to start unless the verdict is accepted."""
        return self in (RestartVerdict.START_AFRESH, RestartVerdict.SILENTLY_WRONG)

    @property
    def can_continue(self) -> bool:
        """Whether the query resumes with right rows."""
        return self in (RestartVerdict.CONTINUES, RestartVerdict.CONTINUES_WITH_NOTE)


_ORDER = tuple(RestartVerdict)


def find_worst(verdicts: Iterable[RestartVerdict]) -> RestartVerdict:
    """Return the worst verdict, `CONTINUES` if there is none."""
    return max(verdicts, key=_ORDER.index, default=RestartVerdict.CONTINUES)


@dataclass(frozen=True)
class Judgement:
    """What one change means for a checkpoint, in sentences without a full stop.

    `spark` is what Spark does with the change, `sinks` what the sinks then contain, `fix` what to do instead. `place`
    is the path in the spec: `views.sums`.
    """

    verdict: RestartVerdict
    kind: str
    what: str
    spark: str
    sinks: str = ""
    fix: str = ""
    place: str = ""


def judge_without_plan(kind: str, what: str, place: str) -> Judgement:
    """Return what a change means of which only Spark's plan shows whether it touches the state."""
    return Judgement(
        RestartVerdict.CANNOT_TELL,
        kind,
        what,
        "whether the change touches the state is known only from Spark's plan",
        fix="run 'millstream plan' without --fast",
        place=place,
    )
