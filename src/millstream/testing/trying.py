"""Play one split and tell whether its end is right, wrong, or right but for rows that came too late."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from millstream.testing.held import Answer, Gap, Reading, folded, gap
from millstream.testing.lateness import course, trials
from millstream.testing.readings import window_end
from millstream.testing.splits import Part, runs, steps, without

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from millstream.testing.baseline import Baseline
    from millstream.testing.case import Case, Outcome, Row
    from millstream.testing.lateness import Course, Late
    from millstream.testing.splits import Split

    Gaps = tuple[tuple[Reading, Gap], ...]

# A split is played so often before a machine that fails is told.
MOST_PLAYS = 3
# Sets of late rows that are left out of the answer before a split is called wrong; each costs a batch query.
MOST_TRIALS = 24


class Unplayed(Exception):
    """The machine failed each time that a split was played; its text says how."""


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
        self._streams: dict[tuple[Split, bool], tuple[tuple[Row, ...], ...]] = {}

    def play(self, split: Split) -> Tried:
        """Play one split and judge its end. Raises `Unplayed`."""
        outcome = self._outcome(self._case(split))
        tried = Tried(split, outcome, course(split, self.baseline.timed, self.baseline.clocks))
        fault = outcome.fault or next((one.error for one in outcome.played if one.error), None)
        return replace(tried, fault=fault) if fault is not None else self._judged(tried)

    def _outcome(self, case: Case) -> Outcome:
        """What becomes of a case on a machine that holds."""
        for _ in range(MOST_PLAYS):
            outcome = self._play(case)
            broke = next((one.error for one in outcome.played if one.broke), None)
            if broke is None:
                return outcome
        raise Unplayed(broke)

    @property
    def by_stream(self) -> bool:
        """Is the answer what the stream gives for all rows in one batch, because a batch query has none?"""
        return self.shape.clock or self.shape.own_state or self.baseline.unanswered is not None

    def _judged(self, tried: Tried) -> Tried:
        """Hold the end against one answer after another, each of which leaves out other late rows."""
        batches = _rows(tried.outcome)
        read = self._runs(tried)
        right = self._right(read)
        gaps = self._gaps(batches, right)
        if not gaps:
            return tried
        counted = sum(one.dropped for one in tried.outcome.played)
        chosen = self.baseline.loose and bool(tried.course.repeated)
        if not (counted or tried.course.again or chosen):
            return self._told(tried, gaps, counted=0)
        found, left = right, frozenset[int]()
        for gone, other in self._less(read, tried.course):
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

    def _runs(self, tried: Tried) -> Split:
        """What is read together where the stream itself tells what is due: all rows, as a rule.

        Where the watermark of several sources ends lower, because a run that starts again does not know how far
        each was, less is due: what all rows of each run give as one batch.
        """
        every = (Part(tuple(sorted(item for part in tried.split for item in part.items))),)
        furthest = course(every, self.baseline.timed, self.baseline.clocks).after
        return (
            every if tried.course.after == () or tried.course.after[-1] >= furthest[-1] else runs(tried.split)
        )

    def _less(self, read: Split, told: Course) -> Iterator[tuple[frozenset[int], list[_Right]]]:
        """Answers without late rows, with these; the likeliest first."""
        late = told.late
        window = self.shape.window
        closed = [one.item for one in late if window_end(window, one.time) <= one.watermark]
        repeated = {item for item, _ in told.repeated}
        if self.baseline.remembers:
            # The sources themselves drop every late row, and rows whose key they remember.
            every = frozenset(one.item for one in late)
            yield every, self._right(without(read, every | repeated), once=True)
        for gone in trials(late, closed, MOST_TRIALS):
            yield gone, self._right(without(read, gone))

    def _right(self, read: Split, *, once: bool = False) -> list[_Right]:
        """What is right for these rows; several where a deduplication may keep any of some."""
        kept = frozenset(item for part in read for item in part.items)
        waits, loose = self.shape.waits, self.baseline.loose and not once
        tables = [] if self.by_stream else [self.baseline.rows(kept, once=once)]
        if loose and not self.by_stream:
            tables.append(self.baseline.rows(kept, last=True))
        if self.by_stream or tables[0] is None:
            return [_Right(None, self._stream(read, once=once))]
        stream = self._stream(read, once=once) if waits else None
        return [_Right(table, stream) for table in tables]

    def _stream(self, read: Split, *, once: bool) -> tuple[tuple[Row, ...], ...]:
        """What the stream gives for these rows, as a rule in one batch, in which none is late."""
        which = (read, once)
        if which not in self._streams:
            made = self._case(read)
            if once:
                made = replace(made, pipeline=self.baseline.without_memory())
            self._streams[which] = tuple(_rows(self._outcome(made))) if read else ()
        return self._streams[which]

    def _case(self, split: Split) -> Case:
        """The split as a case that expects nothing and writes nothing."""
        baseline = self.baseline
        made = steps(split, baseline.items, baseline.case.where)
        return replace(baseline.case, steps=made, now=baseline.now, real=False)


def _rows(outcome: Outcome) -> list[tuple[Row, ...]]:
    """The query's rows of each step."""
    return [tuple(one.rows.get("", ())) for one in outcome.played]
