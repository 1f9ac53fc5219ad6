"""Run a case in other batch splits, with restarts and crashes, and compare the results with the batch result."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

from millstream.testing.model import Advance, Restart
from millstream.testing.shuffle.shrink import shrink
from millstream.testing.shuffle.splits import SplitBatch, draw_splits, single_batch
from millstream.testing.shuffle.trial import MOST_PLAYS, SplitNotRun, SplitTrial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from millstream.analysis.query.plan_model import VolatileExpression
    from millstream.testing.model import Case, Outcome
    from millstream.testing.shuffle.batch_reference import Baseline
    from millstream.testing.shuffle.splits import Split
    from millstream.testing.shuffle.trial import TrialResult
    from millstream.testing.shuffle.watermark_model import LateRow


UNFOLDED = (
    "update mode emits a row again whenever it changes, and neither the sink's key nor a grouping key in the output "
    "identifies the row that it replaces"
)


@dataclass(frozen=True)
class DroppedRow:
    """A row that the watermark dropped in some splits, with the first such split."""

    late: LateRow
    split: int
    """The number of the first such split, from 1."""
    times: int
    """Number of splits that dropped the row."""


@dataclass(frozen=True)
class WrongSplit:
    """A split whose final result differs from the batch result."""

    number: int
    """The number of the split, from 1; 0 for all input in one batch."""
    first: Split
    """The split as it was drawn."""
    trial: TrialResult
    """The result of the smallest split that differs."""
    tries: int
    is_complete: bool
    """False if the tries ran out before the split was minimal."""
    fails_in_one_batch: bool
    """Whether its input in one batch differs too."""


@dataclass(frozen=True)
class ShuffleResult:
    """The result of running a case in other splits."""

    case: Case
    seed: int
    splits: int
    """Number of splits that ran."""
    requested_splits: int
    failure: WrongSplit | None = None
    dropped: tuple[DroppedRow, ...] = ()
    repeated_rows: int = 0
    """Number of splits in which a repeated row was not dropped, because its key was forgotten."""
    unstable_expressions: tuple[VolatileExpression, ...] = ()
    """Expressions in the plan that may return a different value each time they are computed."""
    notes: tuple[str, ...] = ()
    skipped: str | None = None
    """Why the case was skipped: it has no other splits, or they have no batch result."""
    fault: str | None = None
    """Why the case cannot run or be checked."""
    seconds: float = 0.0

    @property
    def has_passed(self) -> bool:
        """Whether every split ended with the batch result."""
        return self.fault is None and self.failure is None and self.skipped is None


def find_split_obstacle(case: Case) -> str | None:
    """Return why a case cannot be split into other batches, as a clause, or None."""
    for step in case.steps:
        for action in step.actions:
            if isinstance(action, Restart) and action.pipeline is not None:
                return "it restarts with another version of the pipeline, and two have no common batch result"
            if isinstance(action, Advance):
                return "its clock advances between steps, and a batch result has only one time"
        if step.expected.error is not None:
            return "it expects the query to fail"
    return None


def shuffle(
    baseline: Baseline,
    play: Callable[[Case], Outcome],
    many: int,
    seed: int,
    say: Callable[[str], None] = lambda _: None,
) -> ShuffleResult:
    """Run the case of `baseline` in `many` random splits, up to the first that differs, which is shrunk.

    The same seed draws the same splits. `play` runs a case without expectations.
    """
    case = baseline.case
    result = ShuffleResult(case, seed, 0, many)
    reason = find_split_obstacle(case)
    if reason is None and len(baseline.items) < 2:
        reason = "it feeds fewer than two rows"
    if reason is not None:
        return replace(result, skipped=f"it cannot be split into other batches: {reason}")
    if not baseline.shape.is_foldable:
        return replace(result, fault=f"its final result is unknown: {UNFOLDED}")
    try:
        return _run_splits(SplitTrial(baseline, play), result, say)
    except SplitNotRun as error:
        return replace(result, fault=f"it did not run to its end in {MOST_PLAYS} attempts: {error}")


def _run_splits(trying: SplitTrial, result: ShuffleResult, say: Callable[[str], None]) -> ShuffleResult:
    """Run the splits and collect the results. Raises `SplitNotRun`."""
    started = time.monotonic()
    baseline, case, requested_splits = trying.baseline, result.case, result.requested_splits
    in_one_batch = trying.play(single_batch(baseline.items))
    if in_one_batch.fault is not None:
        return replace(
            result, fault=f"the query fails with all of its input in one batch: {in_one_batch.fault}"
        )
    splits = draw_splits(baseline.items, requested_splits, Random(f"{result.seed}/{case.name}"))  # noqa: S311 - nothing secret hangs on it
    counts: dict[int, list[tuple[LateRow, int]]] = {}
    repeated_rows = unseen = 0
    for number, split in enumerate(splits, start=1):
        say(f"split {number} of {len(splits)}")
        trial = trying.play(split)
        result = replace(result, splits=number)
        for late in trial.dropped:
            counts.setdefault(late.item, []).append((late, number))
        repeated_rows += bool(trial.repeated)
        if trial.differs:
            say(f"split {number} differs; searching for a smaller one")
            result = replace(result, failure=_find_smallest(trying, number, trial))
            break
        unseen += trial.is_unchecked
    return replace(
        result,
        dropped=tuple(
            DroppedRow(*occurrences[0], len(occurrences)) for _, occurrences in sorted(counts.items())
        ),
        repeated_rows=repeated_rows,
        unstable_expressions=baseline.shape.unstable_expressions,
        notes=tuple(
            _list_notes(trying, requested_splits, len(splits), unseen, has_failed=result.failure is not None)
        ),
        seconds=time.monotonic() - started,
    )


def _find_smallest(trying: SplitTrial, number: int, trial: TrialResult) -> WrongSplit:
    """Shrink a split that differs."""
    trials = {trial.split: trial}

    def differs(split: Split) -> bool:
        try:
            trials[split] = trying.play(split)
        except SplitNotRun:
            # Its result is unknown, so it does not count as a smaller example.
            return False
        return trials[split].differs

    shrunk = shrink(trial.split, differs)
    trial_of_smallest = trials[shrunk.split]
    alone = differs((SplitBatch(tuple(sorted(item for part in shrunk.split for item in part.items))),))
    return WrongSplit(number, trial.split, trial_of_smallest, shrunk.tries, shrunk.is_complete, alone)


def _list_notes(
    trying: SplitTrial, requested_splits: int, drawn_splits: int, unchecked: int, *, has_failed: bool
) -> Iterator[str]:
    """Yield notes on how the final results were checked."""
    baseline, shape = trying.baseline, trying.shape
    if drawn_splits < requested_splits and not has_failed:
        yield f"its input has only about {drawn_splits} different splits"
    if baseline.unanswered is not None:
        yield f"Spark has no batch result ({baseline.unanswered}); compared with one batch of the stream instead"
    elif shape.has_user_state:
        yield "a function keeps its own state; compared with one batch of the stream, not with a batch query"
    elif shape.depends_on_clock:
        yield "its rows depend on the clock; compared with one batch of the stream, not with a batch query"
    if unchecked:
        action = (
            "drops repeated rows within the watermark"
            if shape.has_state_removal
            else "sets its own watermark"
        )
        yield (
            f"{unchecked} splits were not checked: a view {action}, and which rows it drops is known only to Spark"
        )
