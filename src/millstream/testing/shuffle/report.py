"""Format the result of shuffling a case, as text and as JSON data."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from textwrap import indent
from typing import TYPE_CHECKING, Any

from millstream.testing.files import serializer
from millstream.testing.shuffle.export_test import export_split
from millstream.testing.values.timestamps import format_timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from millstream.testing.shuffle.shuffle import DroppedRow, ShuffleResult, WrongSplit
    from millstream.testing.shuffle.sink_contents import ContentDifference, OutputReading
    from millstream.testing.shuffle.splits import Item, Split

# Maximum number of dropped rows, and of rows per difference, to list. The others are only counted.
SHOWN = 10
_MAX_ROW_LENGTH = 100


def summarize_outcome(outcome: ShuffleResult) -> str:
    """Summarize the outcome in one sentence."""
    if outcome.skipped is not None or outcome.fault is not None:
        return str(outcome.skipped or outcome.fault)
    if outcome.failure is None:
        summary = f"{outcome.splits} splits into batches end with the batch result"
    elif outcome.failure.trial.fault is not None:
        summary = (
            f"split {outcome.failure.number} of {outcome.requested_splits} makes the query fail: "
            f"{_first_line(outcome.failure.trial.fault)}"
        )
    else:
        summary = (
            f"split {outcome.failure.number} of {outcome.requested_splits} does not end with the batch result"
        )
    return f"{summary} (seed {outcome.seed})"


def format_details(
    outcome: ShuffleResult, items: Sequence[Item], written_test: Mapping[str, Any]
) -> Iterator[str]:
    """Yield the details below the headline as text. `written_test` is the test in its file."""
    by_number = {item.number: item for item in items}
    if outcome.failure is not None:
        yield from _describe_failure(outcome, outcome.failure, by_number)
        yield ""
        yield "add it as a test:"
        yield from indent(_export(outcome, outcome.failure, items, written_test), "  ").splitlines()
    if outcome.dropped:
        yield "the watermark drops late rows in some splits, as expected; the batch result there excludes them:"
        for item in outcome.dropped[:SHOWN]:
            yield from _describe_dropped(item, by_number)
        if (more := len(outcome.dropped) - SHOWN) > 0:
            yield f"  and {more} rows more"
    if outcome.repeated_rows:
        yield (
            f"in {outcome.repeated_rows} splits a repeated row is not dropped, because the watermark has passed the "
            "time for which its key is remembered"
        )
    yield from (f"note: {note}" for note in outcome.notes)


def to_json_data(
    outcome: ShuffleResult, items: Sequence[Item], written_test: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the whole result as JSON data."""
    by_number = {entry.number: entry for entry in items}
    data: dict[str, Any] = {
        "seed": outcome.seed,
        "asked": outcome.requested_splits,
        "splits": outcome.splits,
        "passed": outcome.has_passed,
        "skipped": outcome.skipped,
        "fault": outcome.fault,
        "dropped": [
            {
                "source": by_number[entry.late.item].source,
                "row": serializer.serialize_feed_item(by_number[entry.late.item].record),
                "event_time": format_micros(entry.late.time),
                "watermark": format_micros(entry.late.watermark),
                "moved_by": None
                if entry.late.moved_by is None
                else serializer.serialize_feed_item(by_number[entry.late.moved_by].record),
                "split": entry.split,
                "splits": entry.times,
            }
            for entry in outcome.dropped
        ],
        "repeated_rows_let_through": outcome.repeated_rows,
        "notes": list(outcome.notes),
    }
    if (failure := outcome.failure) is not None:
        data["wrong"] = {
            "split": failure.number,
            "drawn": _split_data(failure.first, by_number),
            "batches": [
                {**part, "watermark": None if mark is None else format_timestamp(mark)}
                for part, mark in zip(
                    _split_data(failure.trial.split, by_number), _watermarks(failure), strict=True
                )
            ],
            "smallest": failure.is_complete,
            "in_one_batch_too": failure.fails_in_one_batch,
            "fault": failure.trial.fault,
            "differences": [
                {
                    "sink": reading.sink,
                    "held": reading.describe(),
                    "missing": [serializer.serialize_row(entry) for entry in gap.missing],
                    "surplus": [serializer.serialize_row(entry) for entry in gap.surplus],
                    "changed": [
                        {
                            "answer": serializer.serialize_row(expected),
                            "held": serializer.serialize_row(actual),
                        }
                        for expected, actual in gap.changed
                    ],
                }
                for reading, gap in failure.trial.gaps
            ],
            "test": _export(outcome, failure, items, written_test),
        }
    return data


def _export(
    outcome: ShuffleResult, failure: WrongSplit, items: Sequence[Item], written_test: Mapping[str, Any]
) -> str:
    return export_split(
        outcome.case,
        items,
        failure.trial,
        written_test,
        expecting=not (failure.fails_in_one_batch and outcome.unstable_expressions),
    )


def format_micros(micros: int) -> str:
    """Format a time in microseconds since 1970 as in a test file."""
    return format_timestamp(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros))


def _describe_failure(
    outcome: ShuffleResult, failure: WrongSplit, items: Mapping[int, Item]
) -> Iterator[str]:
    """Yield the failing split as a table of its batches, and the differences."""
    split = failure.trial.split
    rows = sum(len(part.items) for part in split)
    size_note = (
        "the smallest that fails"
        if failure.is_complete
        else f"after {failure.tries} tries; a smaller one may fail too"
    )
    yield f"{len(split)} batches of {rows} rows, {size_note}:"
    table = [["batch", "", "rows", "watermark after it"]]
    for number, (part, watermark) in enumerate(zip(split, _watermarks(failure), strict=True), start=1):
        events = [
            *(["restart"] if part.has_restart else []),
            *([f"crash {part.crash}"] if part.crash else []),
        ]
        for index, item in enumerate(part.items):
            last = index == len(part.items) - 1
            table.append(
                [
                    "" if index else str(number),
                    "" if index else ", ".join(events),
                    _format_item(items[item]),
                    format_timestamp(watermark) if last and watermark is not None else "",
                ]
            )
    yield from (f"  {line}" for line in _align(table))
    if failure.trial.fault is not None:
        yield f"the query fails: {_first_line(failure.trial.fault)}"
    for reading, gap in failure.trial.gaps:
        yield from _describe_difference(reading, gap)
    yield _explain_cause(outcome, failure)


def _describe_difference(reading: OutputReading, gap: ContentDifference) -> Iterator[str]:
    yield f"{reading.sink} ({reading.describe()}):"
    table = [["batch result", "after these batches"]]
    table += [[_format_row(expected), _format_row(actual)] for expected, actual in gap.changed[:SHOWN]]
    table += [[_format_row(row), "-"] for row in gap.missing[:SHOWN]]
    table += [["-", _format_row(row)] for row in gap.surplus[:SHOWN]]
    yield from (f"  {line}" for line in _align(table))
    parts = (gap.changed, gap.missing, gap.surplus)
    if more := sum(max(0, len(row) - SHOWN) for row in parts):
        yield f"  and {more} rows more"


def _explain_cause(outcome: ShuffleResult, failure: WrongSplit) -> str:
    """Explain the likely cause."""
    expressions = ", ".join(dict.fromkeys(expression.text for expression in outcome.unstable_expressions))
    note = f"; {expressions} may return a different value each time it is computed" if expressions else ""
    for reading, gap in failure.trial.gaps:
        if gap.is_shared:
            key = ", ".join(reading.key)
            return f"{key} is not unique in the batch result: {reading.sink} keeps only one row per key"
    if failure.fails_in_one_batch:
        return f"these rows in one batch differ too: the output does not depend on the input rows alone{note}"
    return f"these rows in one batch end with the batch result, so the split into batches is the cause{note}"


def _describe_dropped(dropped: DroppedRow, items: Mapping[int, Item]) -> Iterator[str]:
    late = dropped.late
    more_splits = f" and {dropped.times - 1} more" if dropped.times > 1 else ""
    yield f"  {_format_item(items[late.item])}"
    cause = "" if late.moved_by is None else f", moved there by {_format_item(items[late.moved_by])}"
    yield (
        f"    event time {format_micros(late.time)}; the watermark was at {format_micros(late.watermark)} in batch "
        f"{late.batch + 1} of split {dropped.split}{more_splits}{cause}"
    )


def _watermarks(failure: WrongSplit) -> list[datetime | None]:
    """Return Spark's watermark after each batch that ran."""
    watermarks = [result.watermark for result in failure.trial.outcome.results]
    return (watermarks + [None] * len(failure.trial.split))[: len(failure.trial.split)]


def _split_data(split: Split, items: Mapping[int, Item]) -> list[dict[str, Any]]:
    return [
        {
            "restart": part.has_restart,
            "crash": part.crash,
            "rows": [
                {"source": items[number].source, "row": serializer.serialize_feed_item(items[number].record)}
                for number in part.items
            ],
        }
        for part in split
    ]


def _format_item(item: Item) -> str:
    return f"{item.source} {_format_row(serializer.serialize_feed_item(item.record))}"


def _format_row(row: Mapping[str, Any]) -> str:
    text = ", ".join(f"{name}: {_format_value(cell)}" for name, cell in serializer.serialize_row(row).items())
    return f"{{{text if len(text) <= _MAX_ROW_LENGTH else text[: _MAX_ROW_LENGTH - 1] + '…'}}}"


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _align(table: list[list[str]]) -> Iterator[str]:
    widths = [max(len(row[at]) for row in table) for at in range(len(table[0]))]
    for row in table:
        cells = (text.ljust(width) for text, width in zip(row, widths, strict=True) if width)
        yield "  ".join(cells).rstrip()


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
