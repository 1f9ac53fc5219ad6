"""Find out whether the state of a query can depend on the session's time zone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from millstream.checkpoint.recorded_plan import RecordedPlan, RecordedStatefulOperator

_TIME_TYPES = re.compile(r"timestamp|date|interval|time", re.IGNORECASE)
# Words of expressions that read the time zone or the clock. A column of such a name only makes the answer `True`.
_TIME_WORDS = re.compile(
    r"time|date|day|hour|minute|second|week|month|quarter|year|zone|now\(|window", re.IGNORECASE
)
_WITHIN = "within the watermark"
_COLUMN = re.compile(r"\b(\w+)\.(\w+)")


def can_depend_on_zone(plan: RecordedPlan, inputs: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether keys, values or input of a stateful operator may depend on the zone; `True` if in doubt.

    Deduplication within the watermark stores its time next to the keys: with another zone, times that are read
    without one differ by hours from the watermark of the checkpoint, and are late.

    `inputs` are the sources as the spec declares them, with their schemas.
    """
    columns = {
        f"{name}.{column}": str(kind)
        for name, source in inputs.items()
        for column, kind in (source.get("schema") or {}).items()
    }
    return any(
        bool(operator.functions or operator.view)
        or _WITHIN in operator.kind
        or any(_is_of_time(text, columns) for text in _list_texts(operator))
        for operator in plan.stateful
    )


def _is_of_time(text: str, columns: Mapping[str, str]) -> bool:
    """Return whether an expression may use a time; a column that is not of `columns` may be one."""
    return bool(_TIME_WORDS.search(text)) or any(
        bool(_TIME_TYPES.search(columns.get(match.group(), "time"))) for match in _COLUMN.finditer(text)
    )


def _list_texts(operator: RecordedStatefulOperator) -> Iterator[str]:
    for terms in (operator.keys, operator.values, operator.right_keys, operator.right_values):
        yield from (f"{term.text} {term.type}" for term in terms)
    yield from (*operator.condition, *operator.input)
