"""Run one split and check whether its final result is correct, wrong, or correct except for late rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from millstream.testing.shuffle.output_semantics import last_window_end
from millstream.testing.shuffle.sink_contents import (
    ContentDifference,
    ExpectedContents,
    OutputReading,
    combine_batches,
    compare_contents,
)
from millstream.testing.shuffle.splits import SplitBatch, merge_runs, remove_items, to_steps
from millstream.testing.shuffle.watermark_model import candidate_late_sets, compute_timeline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from millstream.testing.model import Case, Outcome, Row
    from millstream.testing.shuffle.batch_reference import Baseline
    from millstream.testing.shuffle.splits import Split
    from millstream.testing.shuffle.watermark_model import LateRow, WatermarkTimeline

    Gaps = tuple[tuple[OutputReading, ContentDifference], ...]

# Number of attempts to run a split before a failure of the machine is reported.
MOST_PLAYS = 3
# Number of sets of late rows to leave out before a split is reported as wrong. Each costs a batch query.
MOST_TRIALS = 24


class SplitNotRun(Exception):
    """The machine failed in every attempt to run a split; the text says how."""


@dataclass(frozen=True)
class TrialResult:
    """The result of running a split."""

    split: Split
    outcome: Outcome
    course: WatermarkTimeline
    """The watermark, computed from the rows."""
    gaps: Gaps = ()
    """The differences between sink contents and the batch result."""
    fault: str | None = None
    """The error of the query, if it failed."""
    dropped: tuple[LateRow, ...] = ()
    """Rows that the watermark dropped and that are in the batch result."""
    repeated: tuple[tuple[int, int], ...] = ()
    """Rows that were not dropped although their key occurred before, each with the earlier row."""
    is_unchecked: bool = False
    """Whether a view dropped rows or keys by a watermark, so that the result could not be checked."""

    @property
    def differs(self) -> bool:
        """Whether the final result is wrong."""
        return bool(self.gaps) or self.fault is not None


@dataclass(frozen=True)
class _Reference:
    """The correct results for some of the rows: the batch result, and the output of one batch of the stream."""

    table: tuple[Row, ...] | None
    stream: tuple[tuple[Row, ...], ...] | None

    def expected_contents(self, reading: OutputReading) -> ExpectedContents:
        """Return the rows that must and may be in the sink."""
        required = None if self.stream is None else combine_batches(self.stream, reading)
        most = self.table if self.table is not None else required
        assert most is not None
        return ExpectedContents(most, most if required is None else required)


class SplitTrial:
    """Runs splits of one case and checks their results."""

    def __init__(self, baseline: Baseline, play: Callable[[Case], Outcome]) -> None:
        self.baseline = baseline
        self.shape = baseline.shape
        self._play = play
        self._stream_results: dict[tuple[Split, bool], tuple[tuple[Row, ...], ...]] = {}

    def play(self, split: Split) -> TrialResult:
        """Run one split and check its final result. Raises `SplitNotRun`."""
        outcome = self._run_case(self._build_case(split))
        trial = TrialResult(
            split, outcome, compute_timeline(split, self.baseline.timed, self.baseline.watermark_policy)
        )
        fault = outcome.fault or next((result.error for result in outcome.results if result.error), None)
        return replace(trial, fault=fault) if fault is not None else self._check_result(trial)

    def _run_case(self, case: Case) -> Outcome:
        """Run a case, again if the machine fails. Raises `SplitNotRun` if every attempt fails."""
        for _ in range(MOST_PLAYS):
            outcome = self._play(case)
            machine_error = next(
                (result.error for result in outcome.results if result.is_external_failure), None
            )
            if machine_error is None:
                return outcome
        raise SplitNotRun(machine_error)

    @property
    def uses_stream_reference(self) -> bool:
        """Whether the reference is one batch of the stream, because a batch query has no result."""
        return (
            self.shape.depends_on_clock or self.shape.has_user_state or self.baseline.unanswered is not None
        )

    def _check_result(self, trial: TrialResult) -> TrialResult:
        """Compare the final result with one reference after another, each without other late rows."""
        batches = _rows_by_step(trial.outcome)
        reference_split = self._reference_split(trial)
        references = self._references(reference_split)
        gaps = self._find_differences(batches, references)
        if not gaps:
            return trial
        dropped_count = sum(item.dropped for item in trial.outcome.results)
        has_free_choice = self.baseline.has_free_choice and bool(trial.course.repeated)
        if not (dropped_count or trial.course.missed_duplicates or has_free_choice):
            return self._report_wrong(trial, gaps, dropped_count=0)
        all_references, left_out = references, frozenset[int]()
        for removed, more_references in self._references_without_late(reference_split, trial.course):
            all_references = [*all_references, *more_references]
            left_out |= removed
            if not (gaps := self._find_differences(batches, all_references)):
                # If this reference alone explains the result, no other row was dropped.
                blamed = (
                    removed
                    if not self._find_differences(batches, [*references, *more_references])
                    else left_out
                )
                late_rows = tuple(item for item in trial.course.late if item.item in blamed)
                return replace(trial, dropped=late_rows, repeated=trial.course.missed_duplicates)
        return self._report_wrong(trial, gaps, dropped_count=dropped_count)

    def _report_wrong(self, trial: TrialResult, gaps: Gaps, *, dropped_count: int) -> TrialResult:
        """Report the result as wrong, or as unchecked if a view drops rows or keys by its own watermark."""
        may_repeat = self.shape.has_state_removal and not any(gap.missing or gap.changed for _, gap in gaps)
        if may_repeat or (dropped_count and self.shape.marked):
            return replace(trial, is_unchecked=True)
        return replace(trial, gaps=gaps)

    def _find_differences(self, batches: Sequence[Sequence[Row]], references: Sequence[_Reference]) -> Gaps:
        tolerance = self.baseline.case.tolerance
        differences = (
            (
                output,
                compare_contents(
                    combine_batches(batches, output),
                    [reference.expected_contents(output) for reference in references],
                    output,
                    tolerance,
                ),
            )
            for output in self.shape.readings
        )
        return tuple((reading, differs) for reading, differs in differences if differs)

    def _reference_split(self, trial: TrialResult) -> Split:
        """Return the batches that the reference run of the stream uses: normally one batch of all rows.

        After a restart, a query does not know the progress of each source, so that the watermark of several sources
        may end lower. Then fewer rows are required: the output of one batch per run.
        """
        in_one_batch = (SplitBatch(tuple(sorted(item for part in trial.split for item in part.items))),)
        final_watermarks = compute_timeline(
            in_one_batch, self.baseline.timed, self.baseline.watermark_policy
        ).after
        return (
            in_one_batch
            if trial.course.after == () or trial.course.after[-1] >= final_watermarks[-1]
            else merge_runs(trial.split)
        )

    def _references_without_late(
        self, reference_split: Split, timeline: WatermarkTimeline
    ) -> Iterator[tuple[frozenset[int], list[_Reference]]]:
        """Yield sets of late rows and the references without them, the likeliest first."""
        late_rows = timeline.late
        window = self.shape.window
        in_closed_windows = [
            row.item for row in late_rows if last_window_end(window, row.time) <= row.watermark
        ]
        repeated = {item for item, _ in timeline.repeated}
        if self.baseline.drops_repeated_rows:
            # The sources drop every late row, and rows whose key they remember.
            all_late = frozenset(row.item for row in late_rows)
            yield (
                all_late,
                self._references(remove_items(reference_split, all_late | repeated), is_deduplicated=True),
            )
        for removed in candidate_late_sets(late_rows, in_closed_windows, MOST_TRIALS):
            yield removed, self._references(remove_items(reference_split, removed))

    def _references(self, reference_split: Split, *, is_deduplicated: bool = False) -> list[_Reference]:
        """Return the references for these rows: several if a deduplication may keep any one of its rows."""
        numbers = frozenset(item for part in reference_split for item in part.items)
        has_delayed_rows, has_free_choice = (
            self.shape.has_delayed_rows,
            self.baseline.has_free_choice and not is_deduplicated,
        )
        tables = (
            []
            if self.uses_stream_reference
            else [self.baseline.rows(numbers, is_deduplicated=is_deduplicated)]
        )
        if has_free_choice and not self.uses_stream_reference:
            tables.append(self.baseline.rows(numbers, last=True))
        if self.uses_stream_reference or tables[0] is None:
            return [_Reference(None, self._run_stream(reference_split, is_deduplicated=is_deduplicated))]
        stream = (
            self._run_stream(reference_split, is_deduplicated=is_deduplicated) if has_delayed_rows else None
        )
        return [_Reference(table, stream) for table in tables]

    def _run_stream(self, reference_split: Split, *, is_deduplicated: bool) -> tuple[tuple[Row, ...], ...]:
        """Return the output of the stream for these rows, normally in one batch, in which no row is late."""
        cache_key = (reference_split, is_deduplicated)
        if cache_key not in self._stream_results:
            case = self._build_case(reference_split)
            if is_deduplicated:
                case = replace(case, pipeline=self.baseline.without_source_deduplication())
            self._stream_results[cache_key] = (
                tuple(_rows_by_step(self._run_case(case))) if reference_split else ()
            )
        return self._stream_results[cache_key]

    def _build_case(self, split: Split) -> Case:
        """Convert the split to a case without expectations and without real sinks."""
        baseline = self.baseline
        steps_of_split = to_steps(split, baseline.items, baseline.case.where)
        return replace(baseline.case, steps=steps_of_split, now=baseline.now, has_real_sinks=False)


def _rows_by_step(outcome: Outcome) -> list[tuple[Row, ...]]:
    """Return the query's rows of each step."""
    return [tuple(result.rows.get("", ())) for result in outcome.results]
