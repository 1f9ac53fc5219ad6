"""What a reader of a sink holds in the end, and what it has against the batch answer."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from millstream.testing.case import Row


@dataclass(frozen=True)
class Reading:
    """How the rows of a query's batches become what a reader of one sink finds."""

    sink: str
    """The sink in words: `delta lake/funnel`."""
    mode: OutputMode
    key: tuple[str, ...] = ()
    """A row replaces the one with the same values of these; none where every row stays beside the others."""
    alike: tuple[str, ...] = ()
    """Rows with the same values of these are one row, any of which is right: the keys of a deduplication."""

    def told(self) -> str:
        """How the rows were put together, as a clause."""
        if self.mode is OutputMode.COMPLETE:
            return "all rows of the last batch"
        return f"the last row of each {', '.join(self.key)}" if self.key else "all rows of all batches"


@dataclass(frozen=True)
class Answer:
    """One batch answer. In append mode a row may still wait for the watermark: it is in `most` and not in `least`."""

    most: tuple[Row, ...]
    least: tuple[Row, ...]


@dataclass(frozen=True)
class Gap:
    """Where what is held differs from every answer that is right."""

    missing: tuple[Row, ...] = ()
    surplus: tuple[Row, ...] = ()
    changed: tuple[tuple[Row, Row], ...] = ()
    """A row of the answer, and the one with the same key that is held in its place."""
    shared: bool = False
    """Are rows missing because others with the same key replace them?"""

    def __bool__(self) -> bool:
        return bool(self.missing or self.surplus or self.changed)


def folded(batches: Sequence[Sequence[Row]], reading: Reading) -> tuple[Row, ...]:
    """The rows that are held after these batches, in the order in which they first came."""
    if reading.mode is OutputMode.COMPLETE:
        return tuple(batches[-1]) if batches else ()
    if not reading.key:
        return tuple(row for rows in batches for row in rows)
    held: dict[Hashable, Row] = {}
    for rows in batches:
        for row in rows:
            held[_key(row, reading.key)] = row
    return tuple(held.values())


def gap(there: Sequence[Row], answers: Sequence[Answer], reading: Reading, tolerance: float) -> Gap:
    """What is held against the answers. Each row may be as in any of them: each leaves out other late rows.

    The first answer is the one that differences are told against.
    """
    found = _by_key(there, answers, reading) if reading.key else _by_row(there, answers, reading)
    return _tolerated(found, reading, tolerance)


def plain(value: Any) -> Hashable:
    """A value in a form that compares and hashes: floats to ten digits, as sums differ by their order."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else f"{value + 0.0:.9e}"
    if isinstance(value, Mapping):
        return tuple(sorted(((str(key), plain(item)) for key, item in value.items()), key=lambda one: one[0]))
    if isinstance(value, list | tuple):
        return tuple(plain(item) for item in value)
    return bytes(value) if isinstance(value, bytearray) else value


def _by_row(there: Sequence[Row], answers: Sequence[Answer], reading: Reading) -> Gap:
    """Every row stands for itself: it is there as often as one of the answers says."""
    has, least, most = _bounds(there, answers, plain)
    examples = {plain(row): row for one in reversed(answers) for row in one.most} | {
        plain(row): row for row in there
    }
    surplus = [examples[text] for text, many in has.items() for _ in range(many - most[text])]
    missing = [examples[text] for text, many in least.items() for _ in range(many - has[text])]
    if reading.alike and not surplus and not missing:
        # Any row of those alike is right, and one of them must be there.
        has, least, most = _bounds(there, answers, lambda row: _key(row, reading.alike))
        named = {_key(row, reading.alike): row for row in (*answers[0].most, *there)}
        surplus = [named[key] for key, many in has.items() for _ in range(many - most[key])]
        missing = [named[key] for key, many in least.items() for _ in range(many - has[key])]
    return Gap(tuple(missing), tuple(surplus))


def _bounds(
    there: Sequence[Row], answers: Sequence[Answer], text: Callable[[Row], Hashable]
) -> tuple[Counter[Hashable], Counter[Hashable], Counter[Hashable]]:
    """How often rows are there, and how often they must and may be."""
    least = [Counter(map(text, one.least)) for one in answers]
    most = [Counter(map(text, one.most)) for one in answers]
    must, may = least[0], most[0]
    for one in least[1:]:
        must = must & one
    for one in most[1:]:
        may = may | one
    return Counter(map(text, there)), must, may


def _by_key(there: Sequence[Row], answers: Sequence[Answer], reading: Reading) -> Gap:
    """A key is there once, with a row that an answer has for it."""
    right: dict[Hashable, dict[Hashable, Row]] = defaultdict(dict)
    for one in answers:
        for row in one.most:
            right[_key(row, reading.key)].setdefault(plain(row), row)
    held = {_key(row, reading.key): row for row in there}
    surplus = [row for key, row in held.items() if key not in right]
    changed = [
        (next(iter(right[key].values())), row)
        for key, row in held.items()
        if key in right and plain(row) not in right[key]
    ]
    due = set.intersection(*({_key(row, reading.key) for row in one.least} for one in answers))
    missing = [next(iter(right[key].values())) for key in right if key in due and key not in held]
    if reading.mode is OutputMode.UPDATE:
        # A key that several rows of the answer share keeps one of them, and loses the others.
        wrong = {_key(row, reading.key) for row, _ in changed}
        replaced = [
            row
            for row in answers[0].most
            if (key := _key(row, reading.key)) in held
            and key not in wrong
            and plain(held[key]) != plain(row)
            and all(_shared(key, one, reading.key) for one in answers)
        ]
        return Gap((*missing, *replaced), tuple(surplus), tuple(changed), bool(replaced))
    return Gap(tuple(missing), tuple(surplus), tuple(changed))


def _shared(key: Hashable, answer: Answer, columns: tuple[str, ...]) -> bool:
    """Does an answer have several rows of that key?"""
    return len({plain(row) for row in answer.most if _key(row, columns) == key}) > 1


def _tolerated(found: Gap, reading: Reading, tolerance: float) -> Gap:
    """Without rows that differ by no more than the tolerance."""
    changed = tuple(pair for pair in found.changed if not close(*pair, tolerance))
    if reading.key or not (found.missing and found.surplus):
        return replace(found, changed=changed)
    missing, surplus = list(found.missing), []
    for row in found.surplus:
        near = next((one for one in missing if close(one, row, tolerance)), None)
        if near is None:
            surplus.append(row)
        else:
            missing.remove(near)
    return Gap(tuple(missing), tuple(surplus), changed)


def close(one: Any, other: Any, tolerance: float) -> bool:
    """Are two values the same, but for the tolerance of their floating-point numbers?"""
    if isinstance(one, float) and isinstance(other, float):
        both = math.isnan(one) and math.isnan(other)
        return both or math.isclose(one, other, rel_tol=tolerance)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(close(one[key], other[key], tolerance) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(
            close(mine, theirs, tolerance) for mine, theirs in zip(one, other, strict=True)
        )
    return bool(one == other)


def _key(row: Row, columns: tuple[str, ...]) -> Hashable:
    low = {name.lower(): value for name, value in row.items()}
    return tuple(plain(low.get(name.lower())) for name in columns)
