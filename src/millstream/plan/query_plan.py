"""The verdict on one query: its changes, what they mean, and the code that accepts them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from millstream.plan.change_kinds.query_changes import QueryChange
from millstream.plan.change_kinds.source_changes import SourceChange
from millstream.plan.change_kinds.state_changes import StateChange
from millstream.plan.compare import compare_records
from millstream.plan.declared_query import hide_secrets
from millstream.plan.judge_query import judge_query
from millstream.plan.judge_sources import judge_source
from millstream.plan.judge_state import judge_state
from millstream.plan.verdict import Judgement, RestartVerdict, find_worst

if TYPE_CHECKING:
    from millstream.checkpoint.metadata import QueryMetadata
    from millstream.plan.changes import Change


@dataclass(frozen=True)
class QueryPlan:
    """What a start of a query would do with its checkpoint."""

    query: str
    checkpoint: str
    judgements: tuple[Judgement, ...] = ()
    is_new: bool = False
    """Whether there is no checkpoint yet, so that the query begins with its sources' first records."""

    is_unfinished: bool = False
    """Whether `plan --apply` was interrupted: the checkpoint is new, and the rows in the sinks are to be replaced."""

    @property
    def verdict(self) -> RestartVerdict:
        """The worst verdict of the changes."""
        return find_worst(judgement.verdict for judgement in self.judgements)

    def list_changes(self) -> list[dict[str, str]]:
        """Return the changes as values of JSON: verdict, kind, place, what, and why."""
        return [
            {
                "kind": judgement.kind,
                "verdict": judgement.verdict.value,
                "place": judgement.place,
                "what": judgement.what,
                "why": judgement.spark,
                "sinks": judgement.sinks,
                "fix": judgement.fix,
            }
            for judgement in self.judgements
        ]

    @property
    def accept_code(self) -> str:
        """The value of `run --accept` for this verdict. It differs for other changes and other queries."""
        content = "\n".join(
            [self.query, *(judgement.what for judgement in self.judgements if judgement.verdict.is_refused)]
        )
        return f"{self.query}-{hashlib.sha256(content.encode()).hexdigest()[:6]}"


def judge_change(change: Change) -> Judgement:
    """Return what one change means for the checkpoint."""
    if isinstance(change, SourceChange):
        return judge_source(change)
    if isinstance(change, StateChange):
        return judge_state(change)
    if isinstance(change, QueryChange):
        return judge_query(change)
    assert_never(change)


def plan_query(query: str, checkpoint: str, before: QueryMetadata, now: QueryMetadata) -> QueryPlan:
    """Judge all changes from a checkpoint's record to the query as it is now, the worst first."""
    # Records of older versions have the values of secrets.
    judgements = [judge_change(change) for change in compare_records(hide_secrets(before), now)]
    order = list(RestartVerdict)
    ranked = sorted(judgements, key=lambda judgement: -order.index(judgement.verdict))
    return QueryPlan(query, checkpoint, tuple(ranked))
