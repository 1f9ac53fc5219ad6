"""The text of a generated test: what was fed, and what the query did."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from millstream.testing.files import serializer
from millstream.testing.files.case_writer import format_tests
from millstream.testing.model import Feed
from millstream.testing.values.timestamps import format_timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.testing.generated.batch_comparison import BatchComparison
    from millstream.testing.model import Case, StepResult

_WIDTH = 100


def format_generated_test(
    case: Case, results: Sequence[StepResult], left_out: frozenset[str], compared: BatchComparison
) -> str:
    """Return a test file with one test. Rows are expected without the columns `left_out`."""
    test: dict[str, Any] = {"query": case.query}
    if case.static:
        test["static"] = {
            name: [serializer.serialize_row(row) for row in rows] for name, rows in case.static.items()
        }
    test["steps"] = [dict(_step_entries(result, left_out)) for result in results]
    return f"{_comment(compared)}\n{format_tests({'tests': {case.name: test}})}"


def _step_entries(result: StepResult, left_out: frozenset[str]) -> Iterator[tuple[str, Any]]:
    for action in result.step.actions:
        if isinstance(action, Feed):
            yield (
                "feed",
                {
                    name: [serializer.serialize_feed_item(item) for item in items]
                    for name, items in action.rows.items()
                },
            )
    rows = [
        {name: value for name, value in serializer.serialize_row(row).items() if name not in left_out}
        for row in result.rows.get("", ())
    ]
    yield "expect", rows
    if result.watermark is not None and result.watermark.timestamp() > 0:
        yield "expect_watermark", format_timestamp(result.watermark)
    yield "expect_dropped", result.dropped


def _comment(compared: BatchComparison) -> str:
    origin = (
        f"The rows fed are generated. What is expected was computed twice: {compared.sentence}."
        if compared.is_same
        else f"The rows fed are generated. What is expected is only what the query returned, so read it before you "
        f"rely on it: {compared.sentence}."
    )
    return "\n".join(f"# {line}" for line in textwrap.wrap(origin, _WIDTH))
