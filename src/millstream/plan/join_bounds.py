"""Compare bounds in time of a join's condition, such as `(pays.at <= orders.at + INTERVAL '10' MINUTE)`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_SECONDS = {"DAY": 86_400, "HOUR": 3_600, "MINUTE": 60, "SECOND": 1}
_INTERVAL = re.compile(rf"^(.+) ([+-]) INTERVAL '(-?[\d.]+)' ({'|'.join(_SECONDS)})$")
_COMPARISON = re.compile(r"^\((.+) (<=|<|>=|>) (.+)\)$")


class _Bound(NamedTuple):
    """`greater - less` is at least `gap` seconds."""

    less: str
    greater: str
    is_strict: bool
    gap: float


def is_stricter_condition(added: Sequence[str], removed: Sequence[str]) -> bool:
    """Return whether rows that meet the added conjuncts meet the removed ones too, as far as the texts tell."""
    bounds = [_parse(text) for text in added]
    return all(any(_implies(bound, _parse(text)) for bound in bounds) for text in removed)


def _implies(bound: _Bound | None, other: _Bound | None) -> bool:
    if bound is None or other is None or bound[:3] != other[:3]:
        return False
    return bound.gap >= other.gap


def _parse(text: str) -> _Bound | None:
    comparison = _COMPARISON.match(text)
    if comparison is None:
        return None
    left, operator, right = comparison.groups()
    if operator in (">", ">="):
        left, right = right, left
    (less, moved), (greater, added) = _split(left), _split(right)
    return _Bound(less, greater, operator in ("<", ">"), moved - added)


def _split(text: str) -> tuple[str, float]:
    """Return a side of a comparison without its interval, and the interval in seconds."""
    interval = _INTERVAL.match(text)
    if interval is None:
        return text, 0.0
    base, sign, length, unit = interval.groups()
    return base, float(f"{sign}1") * float(length) * _SECONDS[unit]
