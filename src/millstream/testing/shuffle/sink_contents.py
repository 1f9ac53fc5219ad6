"""Compute the final contents of a sink, and compare them with the batch result."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from millstream.testing.model import Row


@dataclass(frozen=True)
class OutputReading:
    """The rules by which the rows of all batches combine to the contents of one sink."""

    sink: str
    """The description of the sink: `delta lake/funnel`."""
    mode: OutputMode
    key: tuple[str, ...] = ()
    """The columns by which a row replaces an earlier one; empty if all rows are kept."""
    alike: tuple[str, ...] = ()
    """The deduplication keys: of the rows with equal values, any one is correct."""

    def describe(self) -> str:
        """Describe as a clause how the rows of the batches combine."""
        if self.mode is OutputMode.COMPLETE:
            return "all rows of the last batch"
        return f"the last row of each {', '.join(self.key)}" if self.key else "all rows of all batches"


@dataclass(frozen=True)
class ExpectedContents:
    """One batch result. A row that may still wait for the watermark is in `most` but not in `least`."""

    most: tuple[Row, ...]
    least: tuple[Row, ...]


@dataclass(frozen=True)
class ContentDifference:
    """The differences of the contents from every correct batch result."""

    missing: tuple[Row, ...] = ()
    surplus: tuple[Row, ...] = ()
    changed: tuple[tuple[Row, Row], ...] = ()
    """Pairs of a row of the batch result and the row that the sink contains for the same key."""
    is_shared: bool = False
    """Whether rows are missing because others with the same key replaced them."""

    def __bool__(self) -> bool:
        return bool(self.missing or self.surplus or self.changed)


def combine_batches(batches: Sequence[Sequence[Row]], reading: OutputReading) -> tuple[Row, ...]:
    """Return the contents after these batches, in the order of first arrival."""
    if reading.mode is OutputMode.COMPLETE:
        return tuple(batches[-1]) if batches else ()
    if not reading.key:
        return tuple(row for rows in batches for row in rows)
    row_by_key: dict[Hashable, Row] = {}
    for rows in batches:
        for row in rows:
            row_by_key[_key_of(row, reading.key)] = row
    return tuple(row_by_key.values())


def compare_contents(
    contents: Sequence[Row], answers: Sequence[ExpectedContents], reading: OutputReading, tolerance: float
) -> ContentDifference:
    """Compare the contents with batch results, each of which leaves out other late rows. A row may match any of them.

    Differences are reported against the first batch result.
    """
    difference = (
        _compare_keys(contents, answers, reading)
        if reading.key
        else _compare_rows(contents, answers, reading)
    )
    return _apply_tolerance(difference, reading, tolerance)


def to_comparable(value: Any) -> Hashable:
    """Convert a value to a hashable form. Floats are rounded to ten digits, because sums depend on their order."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else f"{value + 0.0:.9e}"
    if isinstance(value, Mapping):
        return tuple(
            sorted(((str(key), to_comparable(item)) for key, item in value.items()), key=lambda pair: pair[0])
        )
    if isinstance(value, list | tuple):
        return tuple(to_comparable(item) for item in value)
    return bytes(value) if isinstance(value, bytearray) else value


def _compare_rows(
    contents: Sequence[Row], answers: Sequence[ExpectedContents], reading: OutputReading
) -> ContentDifference:
    """Compare without a key: each row occurs as often as in one of the batch results."""
    actual, least, most = _count_bounds(contents, answers, to_comparable)
    examples = {to_comparable(row): row for expected in reversed(answers) for row in expected.most} | {
        to_comparable(row): row for row in contents
    }
    surplus = [examples[text] for text, number in actual.items() for _ in range(number - most[text])]
    missing = [examples[text] for text, number in least.items() for _ in range(number - actual[text])]
    if reading.alike and not surplus and not missing:
        # Of the rows with equal keys any one is correct, and one must be present.
        actual, least, most = _count_bounds(contents, answers, lambda row: _key_of(row, reading.alike))
        row_by_key = {_key_of(row, reading.alike): row for row in (*answers[0].most, *contents)}
        surplus = [row_by_key[key] for key, number in actual.items() for _ in range(number - most[key])]
        missing = [row_by_key[key] for key, number in least.items() for _ in range(number - actual[key])]
    return ContentDifference(tuple(missing), tuple(surplus))


def _count_bounds(
    contents: Sequence[Row], answers: Sequence[ExpectedContents], key_of_row: Callable[[Row], Hashable]
) -> tuple[Counter[Hashable], Counter[Hashable], Counter[Hashable]]:
    """Count how often rows occur, must occur and may occur."""
    least = [Counter(map(key_of_row, counts.least)) for counts in answers]
    most = [Counter(map(key_of_row, counts.most)) for counts in answers]
    required, allowed = least[0], most[0]
    for counts in least[1:]:
        required = required & counts
    for counts in most[1:]:
        allowed = allowed | counts
    return Counter(map(key_of_row, contents)), required, allowed


def _compare_keys(
    contents: Sequence[Row], answers: Sequence[ExpectedContents], reading: OutputReading
) -> ContentDifference:
    """Compare by key: each key occurs once, with a row that one of the batch results has for it."""
    expected_by_key: dict[Hashable, dict[Hashable, Row]] = defaultdict(dict)
    for expected in answers:
        for row in expected.most:
            expected_by_key[_key_of(row, reading.key)].setdefault(to_comparable(row), row)
    row_by_key = {_key_of(row, reading.key): row for row in contents}
    surplus = [row for key, row in row_by_key.items() if key not in expected_by_key]
    changed = [
        (next(iter(expected_by_key[key].values())), row)
        for key, row in row_by_key.items()
        if key in expected_by_key and to_comparable(row) not in expected_by_key[key]
    ]
    required_keys = set.intersection(
        *({_key_of(row, reading.key) for row in expected.least} for expected in answers)
    )
    missing = [
        next(iter(expected_by_key[key].values()))
        for key in expected_by_key
        if key in required_keys and key not in row_by_key
    ]
    if reading.mode is OutputMode.UPDATE:
        # If several rows of the batch result share a key, the sink keeps one of them.
        changed_keys = {_key_of(row, reading.key) for row, _ in changed}
        replaced = [
            row
            for row in answers[0].most
            if (key := _key_of(row, reading.key)) in row_by_key
            and key not in changed_keys
            and to_comparable(row_by_key[key]) != to_comparable(row)
            and all(_is_key_shared(key, expected, reading.key) for expected in answers)
        ]
        return ContentDifference((*missing, *replaced), tuple(surplus), tuple(changed), bool(replaced))
    return ContentDifference(tuple(missing), tuple(surplus), tuple(changed))


def _is_key_shared(key: Hashable, expected: ExpectedContents, columns: tuple[str, ...]) -> bool:
    """Return whether a batch result has several rows with that key."""
    return len({to_comparable(row) for row in expected.most if _key_of(row, columns) == key}) > 1


def _apply_tolerance(
    difference: ContentDifference, reading: OutputReading, tolerance: float
) -> ContentDifference:
    """Remove rows that differ by no more than the tolerance."""
    changed = tuple(pair for pair in difference.changed if not is_close(*pair, tolerance))
    if reading.key or not (difference.missing and difference.surplus):
        return replace(difference, changed=changed)
    missing, surplus = list(difference.missing), []
    for row in difference.surplus:
        match = next((row_missing for row_missing in missing if is_close(row_missing, row, tolerance)), None)
        if match is None:
            surplus.append(row)
        else:
            missing.remove(match)
    return ContentDifference(tuple(missing), tuple(surplus), changed)


def is_close(first: Any, second: Any, tolerance: float) -> bool:
    """Return whether two values are equal within the tolerance of floating-point numbers."""
    if isinstance(first, float) and isinstance(second, float):
        both_nan = math.isnan(first) and math.isnan(second)
        return both_nan or math.isclose(first, second, rel_tol=tolerance)
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(
            is_close(first[key], second[key], tolerance) for key in first
        )
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(
            is_close(left, right, tolerance) for left, right in zip(first, second, strict=True)
        )
    return bool(first == second)


def _key_of(row: Row, columns: tuple[str, ...]) -> Hashable:
    lowered = {name.lower(): value for name, value in row.items()}
    return tuple(to_comparable(lowered.get(name.lower())) for name in columns)
