"""Words for operators, lengths of time and lists, as the check and `explain` say them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from millstream.analysis.dataflow import (
    Aggregate,
    BatchFunction,
    Deduplicate,
    Join,
    Limit,
    Read,
    StatefulFunction,
    Watermark,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.analysis.dataflow import Operator
    from millstream.diagnostics.finding import Span

_UNITS = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000), ("millisecond", 1))


def length(time: timedelta) -> str:
    """`10 minutes`, `1 hour 30 minutes`; `0 seconds` for none."""
    left = round(time / timedelta(milliseconds=1))
    words = []
    for unit, size in _UNITS:
        count, left = divmod(left, size)
        if count:
            words.append(f"{count} {unit}{'' if count == 1 else 's'}")
    return " ".join(words) or "0 seconds"


def listed(words: Sequence[str], last: str = "and") -> str:
    """`a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}" if words else ""


def quoted(names: Sequence[str]) -> str:
    """`'a', 'b' and 'c'`."""
    return listed([f"'{name}'" for name in names])


def place(span: Span | None) -> str:
    """`pipeline.yml:12`, or nothing."""
    return f"{span.file}:{span.line}" if span else ""


def called(operator: Operator) -> str:
    """An operator in a few words, for the middle of a sentence: `the aggregation of 'per_minute'`."""
    match operator:
        case Aggregate():
            name = "the aggregation"
        case Deduplicate():
            name = "the deduplication"
        case Join():
            name = "the join"
        case StatefulFunction() | BatchFunction():
            return f"the function {operator.function}" if operator.function else "a function"
        case Limit():
            name = "the limit"
        case Watermark():
            name = "the watermark"
        case Read():
            return f"source '{operator.source}'" if operator.source else f"a {operator.format} source"
        case _:
            name = f"the {operator.node.lower()}" if operator.node else "an operator"
    if operator.view:
        return f"{name} of '{operator.view}'"
    below = {one.source for one in operator.walk() if isinstance(one, Read) and one.source}
    return f"{name} of '{below.pop()}'" if len(below) == 1 else name
