"""Export a failing split as YAML for a test file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.testing.files import serializer
from millstream.testing.files.case_writer import format_tests
from millstream.testing.shuffle.sink_contents import to_comparable
from millstream.testing.values.timestamps import format_timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from millstream.testing.model import Case, Row
    from millstream.testing.shuffle.sink_contents import ContentDifference
    from millstream.testing.shuffle.splits import Item, SplitBatch
    from millstream.testing.shuffle.trial import TrialResult

# The keys of a test besides its steps, in the usual order. Placeholders of a table are already replaced.
_COPIED_KEYS = ("query", "now", "params", "set", "static", "tolerance")


def export_split(
    case: Case,
    items: Sequence[Item],
    trial: TrialResult,
    written_test: Mapping[str, Any],
    *,
    expecting: bool = True,
) -> str:
    """Return the split as YAML for a test file. The test fails until the pipeline is fixed.

    `written_test` is the test in its file, for the keys that a case does not store. Each step expects its actual
    output, with wrong rows replaced by those of the batch result. Missing rows are expected in the last step. Without
    `expecting`, the test has no expectations, because values that differ on each computation have no right value.
    """
    test: dict[str, Any] = {key: written_test[key] for key in _COPIED_KEYS if key in written_test}
    test.setdefault("query", case.query)
    if case.now is not None:
        test["now"] = format_timestamp(case.now)
    if case.static:
        test["static"] = {
            name: [serializer.serialize_row(item) for item in rows_of_step]
            for name, rows_of_step in case.static.items()
        }
    items_by_number = {item.number: item for item in items}
    steps = [dict(_step_entries(part, items_by_number)) for part in trial.split]
    if trial.gaps and expecting and len(trial.outcome.results) == len(steps):
        _, gap = trial.gaps[0]
        actual_rows = [list(item.rows.get("", ())) for item in trial.outcome.results]
        for step, rows_of_step in zip(steps, _corrected_rows(actual_rows, gap), strict=True):
            step["expect"] = [serializer.serialize_row(item) for item in rows_of_step]
    test["steps"] = steps
    return format_tests({f"{case.name}, in {len(steps)} batches": test})


def _step_entries(part: SplitBatch, items_by_number: Mapping[int, Item]) -> Iterator[tuple[str, Any]]:
    if part.has_restart:
        yield "restart", True
    feed: dict[str, list[Any]] = {}
    for number in part.items:
        feed.setdefault(items_by_number[number].source, []).append(
            serializer.serialize_feed_item(items_by_number[number].record)
        )
    yield "feed", feed
    if part.crash:
        yield "crash", part.crash


def _corrected_rows(actual_rows: Sequence[Sequence[Row]], gap: ContentDifference) -> list[list[Row]]:
    """Return the correct output of each step: its actual output, with wrong rows removed or replaced."""
    right_rows = {to_comparable(actual): expected for expected, actual in gap.changed}
    surplus = [to_comparable(row) for row in gap.surplus]
    corrected: list[list[Row]] = [[] for _ in actual_rows]
    for index in range(len(actual_rows) - 1, -1, -1):
        for row in actual_rows[index]:
            comparable = to_comparable(row)
            if comparable in surplus:
                surplus.remove(comparable)
            else:
                corrected[index].append(right_rows.pop(comparable, row))
    if corrected:
        corrected[-1] += gap.missing
    return corrected
