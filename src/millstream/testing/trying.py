"""Play one split and tell whether its end is right, wrong, or right but for rows that came too late."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from millstream.testing.held import Answer, Gap, Reading, folded, gap
from millstream.testing.lateness import course, trials
from millstream.testing.readings import window_end
from millstream.testing.splits import Part, steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from millstream.testing.baseline import Baseline
    from millstream.testing.case import Case, Outcome, Row
    from millstream.testing.lateness import Course, Late
    from millstream.testing.splits import Split

    Gaps = tuple[tuple[Reading, Gap], ...]

# Sets of late rows that are left out of the answer before a split is called wrong; each costs a batch query.
MOST_TRIALS = 24


@dataclass(frozen=True)
class Tried:
    """A split that was played."""

    split: Split
    outcome: Outcome
    course: Course
    """The watermark, told from the rows."""
    gaps: Gaps = ()
    """What readers of sinks hold against the batch answer, where it differs."""
    fault: str | None = None
    """How the query ended, if it failed."""
    dropped: tuple[Late, ...] = ()
    """Rows that the watermark dropped, and that the batch answer has."""
    again: tuple[tuple[int, int], ...] = ()
    """Rows that came through though their key was there before, each with the row that had it."""
    unseen: bool = False
    """Did a view drop or forget rows by a watermark, so that its end could not be judged?"""

    @property
    def differs(self) -> bool:
        """Is its end wrong?"""
        return bool(self.gaps) or self.fault is not None


@dataclass(frozen=True)
class _Right:
    """What is right for some of the rows: a batch answer, and what one batch of the stream gives."""

    table: tuple[Row, ...] | None
    stream: tuple[tuple[Row, ...], ...] | None

    def answer(self, reading: Reading) -> Answer:
        """The rows that must and may be there."""
        due = None if self.stream is None else folded(self.stream, reading)
        most = self.table if self.table is not None else due
        assert most is not None
        return Answer(most, most if due is None else due)


class Trying:
    """Plays splits of one case and judges them."""

    def __init__(self, baseline: Baseline, play: Callable[[Case], Outcome]) -> None:
        self.baseline = baseline
        self.shape = baseline.shape
        self._play = play
        self._streams: dict[tuple[frozenset[int], bool], tuple[tuple[Row, ...], ...]] = {}

    def play(self, split: Split) -> Tried:
        """Play one split and judge its end."""
        outcome = self._play(self._case(split))
        tried = Tried(split, outcome, course(split, self.baseline.timed, self.baseline.clocks))
        fault = outcome.fault or next((one.error for one in outcome.played if one.error), None)
        return replace(tried, fault=fault) if fault is not None else self._judged(tried)

    @property
    def by_stream(self) -> bool:
        """Is the answer what the stream gives for all rows in one batch, because a batch query has none?"""
        return self.shape.clock or self.shape.own_state or self.baseline.unanswered is not None

    def _judged(self, tried: Tried) -> Tried:
        """Hold the end against one answer after another, each of which leaves out other late rows."""
        batches = _rows(tried.outcome)
        kept = frozenset(item for part in tried.split for item in part.items)
        right = self._right(kept)
        gaps = self._gaps(batches, right)
        if not gaps:
            return tried
        counted = sum(one.dropped for one in tried.outcome.played)
        chosen = self.baseline.loose and bool(tried.course.repeated)
        if not (counted or tried.course.again or chosen):
            return self._told(tried, gaps, counted=0)
        found, left = right, frozenset[int]()
        for gone, other in self._less(kept, tried.course):
            found = [*found, *other]
            left |= gone
            if not (gaps := self._gaps(batches, found)):
                # Where this answer alone explains it, no other row is blamed.
                blamed = gone if not self._gaps(batches, [*right, *other]) else left
                late = tuple(one for one in tried.course.late if one.item in blamed)
                return replace(tried, dropped=late, again=tried.course.again)
        return self._told(tried, gaps, counted=counted)

    def _told(self, tried: Tried, gaps: Gaps, *, counted: int) -> Tried:
        """The end is wrong, unless a view drops or forgets by a watermark, which cannot be followed from here."""
        again = self.shape.forgets and not any(gap.missing or gap.changed for _, gap in gaps)
        if again or (counted and self.shape.marked):
            return replace(tried, unseen=True)
        return replace(tried, gaps=gaps)

    def _gaps(self, batches: Sequence[Sequence[Row]], right: Sequence[_Right]) -> Gaps:
        tolerance = self.baseline.case.tolerance
        found = (
            (one, gap(folded(batches, one), [each.answer(one) for each in right], one, tolerance))
            for one in self.shape.readings
        )
        return tuple((reading, differs) for reading, differs in found if differs)

    def _less(self, kept: frozenset[int], told: Course) -> Iterator[tuple[frozenset[int], list[_Right]]]:
        """Answers without late rows, with these; the likeliest first."""
        late = [one for one in told.late if one.item in kept]
        window = self.shape.window
        closed = [one.item for one in late if window_end(window, one.time) <= one.watermark]
        repeated = {item for item, _ in told.repeated}
        if self.baseline.remembers:
            # The sources themselves drop every late row, and rows whose key they remember.
            every = frozenset(one.item for one in late)
            yield every, self._right(kept - every - repeated, once=True)
        for gone in trials(late, closed, MOST_TRIALS):
            yield gone, self._right(kept - gone)

    def _right(self, kept: frozenset[int], *, once: bool = False) -> list[_Right]:
        """What is right for these rows; several where a deduplication may keep any of some."""
        waits, loose = self.shape.waits, self.baseline.loose and not once
        tables = [] if self.by_stream else [self.baseline.rows(kept, once=once)]
        if loose and not self.by_stream:
            tables.append(self.baseline.rows(kept, last=True))
        if self.by_stream or tables[0] is None:
            return [_Right(None, self._stream(kept, once=once))]
        stream = self._stream(kept, once=once) if waits else None
        return [_Right(table, stream) for table in tables]

    def _stream(self, kept: frozenset[int], *, once: bool) -> tuple[tuple[Row, ...], ...]:
        """What the stream gives for these rows in one batch, in which none is late."""
        which = (kept, once)
        if which not in self._streams:
            made = self._case((Part(tuple(sorted(kept))),))
            if once:
                made = replace(made, pipeline=self.baseline.without_memory())
            self._streams[which] = tuple(_rows(self._play(made))) if kept else ()
        return self._streams[which]

    def _case(self, split: Split) -> Case:
        """The split as a case that expects nothing and writes nothing."""
        baseline = self.baseline
        made = steps(split, baseline.items, baseline.case.where)
        return replace(baseline.case, steps=made, now=baseline.now, real=False)


def _rows(outcome: Outcome) -> list[tuple[Row, ...]]:
    """The query's rows of each step."""
    return [tuple(one.rows.get("", ())) for one in outcome.played]
