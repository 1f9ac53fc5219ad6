"""Replay a case in other batch splits, with restarts and crashes, and hold each end against the batch answer."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

from millstream.testing.case import Advance, Restart
from millstream.testing.shrink import shrink
from millstream.testing.splits import Part, drawn, whole
from millstream.testing.trying import MOST_PLAYS, Trying, Unplayed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from millstream.analysis.dataflow import Volatile
    from millstream.testing.baseline import Baseline
    from millstream.testing.case import Case, Outcome
    from millstream.testing.lateness import Late
    from millstream.testing.splits import Split
    from millstream.testing.trying import Tried


UNFOLDED = (
    "update mode gives a row again whenever it changes, and neither the sink's key nor a grouping key in the output "
    "tells which row it replaces"
)


@dataclass(frozen=True)
class Dropped:
    """A row that the watermark dropped in some of the splits, with the first of them."""

    late: Late
    split: int
    """The number of that split, from 1."""
    times: int
    """In so many splits."""


@dataclass(frozen=True)
class Wrong:
    """A split whose end differs from the batch answer."""

    number: int
    """Which of the splits it was, from 1; 0 for all input in one batch."""
    first: Split
    """As it was drawn."""
    tried: Tried
    """The smallest that differs, played."""
    tries: int
    complete: bool
    """False when there was no time to make it as small as it could be."""
    alone: bool
    """Does all of its input in one batch differ too?"""


@dataclass(frozen=True)
class Shuffled:
    """What became of a case in other splits."""

    case: Case
    seed: int
    splits: int
    """So many were played."""
    asked: int
    wrong: Wrong | None = None
    dropped: tuple[Dropped, ...] = ()
    again: int = 0
    """In so many splits a repeated row came through, because its key was not remembered any more."""
    strange: tuple[Volatile, ...] = ()
    """What of its plan may give another value each time it is computed."""
    notes: tuple[str, ...] = ()
    skipped: str | None = None
    """Why it was left alone: it has no other splits, or they have no batch answer."""
    fault: str | None = None
    """Why it cannot be played or judged."""
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Did every split end with the batch answer?"""
        return self.fault is None and self.wrong is None and self.skipped is None


def unfit(case: Case) -> str | None:
    """Why a case cannot be cut into other batches, in a clause; None where it can."""
    for step in case.steps:
        for action in step.actions:
            if isinstance(action, Restart) and action.pipeline is not None:
                return "another version of the pipeline takes over in it, and there is no batch answer of two"
            if isinstance(action, Advance):
                return "its clock goes on between steps, and a batch answer knows one time only"
        if step.expected.error is not None:
            return "it expects the query to fail"
    return None


def shuffle(
    baseline: Baseline,
    play: Callable[[Case], Outcome],
    many: int,
    seed: int,
    say: Callable[[str], None] = lambda _: None,
) -> Shuffled:
    """Play the case of `baseline` in `many` random splits, up to the first that differs, which is made smaller.

    The same seed draws the same splits. `play` plays a case whose steps expect nothing.
    """
    case = baseline.case
    found = Shuffled(case, seed, 0, many)
    reason = unfit(case)
    if reason is None and len(baseline.items) < 2:
        reason = "it feeds fewer than two rows"
    if reason is not None:
        return replace(found, skipped=f"it cannot be cut into other batches: {reason}")
    if not baseline.shape.folds:
        return replace(found, fault=f"its end cannot be told: {UNFOLDED}")
    try:
        return _replayed(Trying(baseline, play), found, say)
    except Unplayed as broke:
        return replace(found, fault=f"it cannot be played to its end, tried {MOST_PLAYS} times: {broke}")


def _replayed(trying: Trying, found: Shuffled, say: Callable[[str], None]) -> Shuffled:
    """Play the splits, of which nothing is known yet. Raises `Unplayed`."""
    began = time.monotonic()
    baseline, case, many = trying.baseline, found.case, found.asked
    alone = trying.play(whole(baseline.items))
    if alone.fault is not None:
        return replace(found, fault=f"the query fails with all of its input in one batch: {alone.fault}")
    splits = drawn(baseline.items, many, Random(f"{found.seed}/{case.name}"))  # noqa: S311 - nothing secret hangs on it
    counts: dict[int, list[tuple[Late, int]]] = {}
    again = unseen = 0
    for number, split in enumerate(splits, start=1):
        say(f"split {number} of {len(splits)}")
        tried = trying.play(split)
        found = replace(found, splits=number)
        for late in tried.dropped:
            counts.setdefault(late.item, []).append((late, number))
        again += bool(tried.again)
        if tried.differs:
            say(f"split {number} differs; looking for a smaller one")
            found = replace(found, wrong=_smallest(trying, number, tried))
            break
        unseen += tried.unseen
    return replace(
        found,
        dropped=tuple(Dropped(*some[0], len(some)) for _, some in sorted(counts.items())),
        again=again,
        strange=baseline.shape.strange,
        notes=tuple(_notes(trying, many, len(splits), unseen, wrong=found.wrong is not None)),
        seconds=time.monotonic() - began,
    )


def _smallest(trying: Trying, number: int, tried: Tried) -> Wrong:
    """Make a split that differs smaller."""
    seen = {tried.split: tried}

    def differs(split: Split) -> bool:
        try:
            seen[split] = trying.play(split)
        except Unplayed:
            # Nothing is known of it, so it is no smaller example.
            return False
        return seen[split].differs

    small = shrink(tried.split, differs)
    last = seen[small.split]
    alone = differs((Part(tuple(sorted(item for part in small.split for item in part.items))),))
    return Wrong(number, tried.split, last, small.tries, small.complete, alone)


def _notes(trying: Trying, asked: int, found: int, unseen: int, *, wrong: bool) -> Iterator[str]:
    """What a reader must know of how the ends were judged."""
    baseline, shape = trying.baseline, trying.shape
    if found < asked and not wrong:
        yield f"its input can be cut in {found} different ways, or hardly more"
    if baseline.unanswered is not None:
        yield f"Spark has no batch answer ({baseline.unanswered}); held against one batch of the stream instead"
    elif shape.own_state:
        yield "a function keeps state of its own; held against one batch of the stream, not against a batch query"
    elif shape.clock:
        yield "its rows depend on the clock; held against one batch of the stream, not against a batch query"
    if unseen:
        what = "drops repeated rows within the watermark" if shape.forgets else "sets a watermark of its own"
        yield (
            f"{unseen} splits were not judged: a view {what}, and which rows it drops or lets through, only Spark "
            "knows"
        )
