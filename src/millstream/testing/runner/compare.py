"""Compare the result of a step with its expectations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from millstream.testing.model import Difference, Restart
from millstream.testing.runner.diff_table import format_difference
from millstream.testing.runner.row_matching import match_rows
from millstream.testing.values.equality import is_equal
from millstream.testing.values.timestamps import format_timestamp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.testing.model import Case, Expected, Row, StepResult
    from millstream.testing.runner.row_matching import RowPairs

Same = Callable[[str, Any, Any], bool]
"""A function of a column, an expected and an actual value, which returns whether the values are equal."""


def find_differences(expected: Expected, result: StepResult, case: Case) -> tuple[Difference, ...]:
    """Return every failed expectation.

    An unexpected error is the only difference returned, because everything else follows from it.
    """
    differences: list[Difference] = []
    if result.error is not None and expected.error is None:
        return (Difference("error", ("none",), tuple(result.error.splitlines()) or ("",)),)
    if expected.error is not None and expected.error not in (result.error or ""):
        actual_lines = tuple(result.error.splitlines()) if result.error else ("none",)
        differences.append(Difference("error", (f"an error with the text '{expected.error}'",), actual_lines))
    for name, rows in expected.rows.items():
        differences += _compare_rows(
            _label_rows(name, case), rows, result.rows.get(name, ()), value_comparison(case.tolerance)
        )
    if expected.watermark is not None and result.watermark != expected.watermark:
        actual_lines = (format_timestamp(result.watermark),) if result.watermark else ("none",)
        differences.append(Difference("watermark", (format_timestamp(expected.watermark),), actual_lines))
    if expected.dropped is not None and expected.dropped != result.dropped:
        differences.append(
            Difference("rows dropped as too late", (str(expected.dropped),), (str(result.dropped),))
        )
    differences += _compare_state(expected, result)
    if isinstance(expected.letters, int):
        if expected.letters != len(result.letters):
            differences += _compare_rows(
                "dead letters", [{}] * expected.letters, result.letters, value_comparison(0)
            )
    elif expected.letters is not None:
        differences += _compare_rows("dead letters", expected.letters, result.letters, is_same_letter_field)
    return tuple(differences)


def _label_rows(name: str, case: Case) -> str:
    """Name the rows by the element that outputs them, which only a later version of the pipeline may have."""
    if not name:
        return f"rows of query '{case.query}'"
    restarts = [action for step in case.steps for action in step.actions if isinstance(action, Restart)]
    versions = [case.pipeline, *(restart.pipeline for restart in restarts if restart.pipeline is not None)]
    if any(name in version.views for version in versions):
        return f"rows of view '{name}'"
    is_source = any(name in version.sources for version in versions)
    return f"rows of source '{name}'" if is_source else f"rows of sink '{name}'"


def _compare_state(expected: Expected, result: StepResult) -> list[Difference]:
    """Compare the number of rows in state: the total, or by operator."""
    if expected.state is None:
        return []
    if isinstance(expected.state, int):
        total = sum(result.state.values())
        if total == expected.state:
            return []
        by_operator = (
            [f"  {name}: {number}" for name, number in result.state.items()] if len(result.state) > 1 else []
        )
        return [Difference("rows in state", (str(expected.state),), (str(total), *by_operator))]
    if all(result.state.get(name) == number for name, number in expected.state.items()):
        return []
    expected_lines = tuple(f"{name}: {number}" for name, number in expected.state.items())
    actual_lines = [
        f"{name}: {result.state[name]}" if name in result.state else f"{name}: no such operator"
        for name in expected.state
    ]
    actual_lines += [
        f"{name}: {number}" for name, number in result.state.items() if name not in expected.state
    ]
    return [Difference("rows in state", expected_lines, tuple(actual_lines))]


def _compare_rows(
    subject: str, expected: Sequence[Row], actual: Sequence[Row], same: Same
) -> list[Difference]:
    """Compare rows in any order."""
    pairing = pair_rows(expected, actual, same)
    return [] if pairing.is_complete else [format_difference(subject, expected, actual, pairing, same)]


def pair_rows(expected: Sequence[Row], actual: Sequence[Row], same: Same) -> RowPairs:
    """Pair expected rows with actual rows, by the columns that the expected rows name."""
    lowered = [{name.lower(): value for name, value in row.items()} for row in actual]

    def cost(expected_row: Row, actual_row: Row) -> int:
        return sum(
            name.lower() not in actual_row or not same(name, value, actual_row[name.lower()])
            for name, value in expected_row.items()
        )

    return match_rows(expected, lowered, cost)


def value_comparison(tolerance: float) -> Same:
    """Compare values with a tolerance, whatever their column."""
    return lambda _, expected, actual: is_equal(expected, actual, tolerance)


def is_same_letter_field(name: str, expected: Any, actual: Any) -> bool:
    """Compare a field of a dead letter. An expected reason may be a part of Spark's message."""
    if name.lower() == "reason" and isinstance(expected, str):
        return expected in str(actual)
    return is_equal(expected, actual, 0)
