"""Compare what a query returned in a test with the rows that a batch run gives for the same input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.analysis.query.plan_model import Stability
from millstream.testing.shuffle.batch_reference import Baseline
from millstream.testing.shuffle.sink_contents import ExpectedContents, combine_batches, compare_contents
from millstream.testing.shuffle.splits import list_items

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from millstream.analysis.query.plan_model import Operator
    from millstream.testing.model import Case, Row, StepResult
    from millstream.testing.shuffle.output_semantics import Shape
    from millstream.testing.shuffle.sink_contents import ContentDifference
    from millstream.testing.shuffle.splits import Item

# A value of these kinds differs each time it is computed.
_UNSTABLE = (Stability.UNSTABLE, Stability.PARTITION)


@dataclass(frozen=True)
class GeneratedCase:
    """A case of generated rows, with the plan of its query."""

    case: Case
    root: Operator
    late: frozenset[int]
    """The numbers of the items that are late."""
    far: frozenset[int]
    """The numbers of the items that are far ahead."""


@dataclass(frozen=True)
class BatchComparison:
    """The result of a comparison as a sentence, and whether the rows are those of a batch run."""

    is_same: bool
    sentence: str


def unstable_columns(root: Operator) -> frozenset[str]:
    """Return the columns of a query whose values differ each time they are computed."""
    return _columns_with(root, _UNSTABLE)


def compare_with_batch(
    spark: SparkSession, generated: GeneratedCase, shape: Shape, results: Sequence[StepResult]
) -> BatchComparison:
    """Compare the rows of all steps with a batch run over the rows fed.

    Late rows that the watermark may have dropped are left out of the batch run. A row that waits for the watermark
    is in the batch run and need not be in the results, if it is due to the rows far ahead.
    """
    if reason := _find_obstacle(generated.root, shape):
        return BatchComparison(
            is_same=False, sentence=f"there is no batch run to compare them with: {reason}"
        )
    ignored = _columns_with(generated.root, (*_UNSTABLE, Stability.BATCH))
    items = list_items(generated.case)
    baseline = Baseline(spark, generated.case, items)
    batches = [_without(step.rows.get("", ()), ignored) for step in results]
    has_dropped = any(step.dropped for step in results)
    first: ContentDifference | None = None
    for removed in _late_sets(generated.late, items) if has_dropped else [frozenset[int]()]:
        # Of rows with the same key, a deduplication may keep the first or the last.
        for last in (False, True) if shape.deduplications else (False,):
            rest = frozenset(item.number for item in items) - removed
            most = baseline.rows(rest, last=last)
            least = baseline.rows(rest - generated.far, last=last) if shape.has_delayed_rows else most
            if most is None or least is None:
                reason = (baseline.unanswered or "").rstrip("; ")
                sentence = f"Spark has no batch result to compare them with: {reason}"
                return BatchComparison(is_same=False, sentence=sentence)
            expected = ExpectedContents(_without(most, ignored), _without(least, ignored))
            differences = [
                compare_contents(
                    combine_batches(batches, reading), [expected], reading, generated.case.tolerance
                )
                for reading in shape.readings
            ]
            if not any(differences):
                return BatchComparison(is_same=True, sentence=_describe(len(removed), ignored))
            first = first or next(difference for difference in differences if difference)
    assert first is not None
    return BatchComparison(is_same=False, sentence=_describe_difference(first))


def _find_obstacle(root: Operator, shape: Shape) -> str:
    """Return why no batch run can be compared; "" if one can."""
    if shape.has_user_state:
        return "a function keeps its own state"
    if not shape.is_foldable:
        return "update mode returns a row again whenever it changes, and no column identifies it"
    ignored = _columns_with(root, (*_UNSTABLE, Stability.BATCH))
    if root.columns and len(ignored) == len(root.columns):
        return "which rows come depends on the clock, or on values that differ each time"
    return ""


def _columns_with(root: Operator, kinds: Sequence[Stability]) -> frozenset[str]:
    return frozenset(
        column.name for column in root.columns if any(value.stability in kinds for value in column.volatile)
    )


def _without(rows: Sequence[Row], columns: frozenset[str]) -> tuple[Row, ...]:
    return tuple({name: value for name, value in row.items() if name not in columns} for row in rows)


def _late_sets(late: frozenset[int], items: Sequence[Item]) -> Iterator[frozenset[int]]:
    """Yield the late rows that the watermark may have dropped: all, those of one source, none."""
    yield late
    if len(late) > 1:
        for number in sorted(late, key=lambda number: items[number].source):
            yield frozenset({number})
            yield late - {number}
    yield frozenset()


def _describe(dropped: int, ignored: frozenset[str]) -> str:
    sentence = "a batch run over the same input gives the same rows"
    if dropped:
        rows = "the late row, which is" if dropped == 1 else f"the {dropped} late rows, which are"
        sentence += f", without {rows} dropped"
    return f"{sentence} (not compared: {', '.join(sorted(ignored))})" if ignored else sentence


def _describe_difference(difference: ContentDifference) -> str:
    counts = (
        (len(difference.missing), "only in the batch run"),
        (len(difference.surplus), "only in the query"),
        (len(difference.changed), "with other values"),
    )
    return "a batch run gives other rows: " + ", ".join(
        f"{count} {where}" for count, where in counts if count
    )
