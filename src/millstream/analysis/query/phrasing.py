"""Words for operators, durations and lists in the messages of `check` and `explain`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from millstream.analysis.query.plan_model import (
    Aggregate,
    BatchFunction,
    Deduplicate,
    Join,
    Limit,
    Read,
    StatefulFunction,
    WatermarkOperator,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.analysis.query.plan_model import Operator
    from millstream.diagnostics.finding import Span

_UNITS = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000), ("millisecond", 1))


def format_duration(time: timedelta) -> str:
    """Format a duration: `10 minutes`, `1 hour 30 minutes`; `0 seconds` for zero."""
    remaining = round(time / timedelta(milliseconds=1))
    words = []
    for unit, size in _UNITS:
        count, remaining = divmod(remaining, size)
        if count:
            words.append(f"{count} {unit}{'' if count == 1 else 's'}")
    return " ".join(words) or "0 seconds"


def join_words(words: Sequence[str], last: str = "and") -> str:
    """Join words: `a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}" if words else ""


def join_quoted(names: Sequence[str]) -> str:
    """Join quoted names: `'a', 'b' and 'c'`."""
    return join_words([f"'{name}'" for name in names])


def format_position(span: Span | None) -> str:
    """Format a position: `pipeline.yml:12`; empty without a span."""
    return f"{span.file}:{span.line}" if span else ""


def describe_operator(operator: Operator) -> str:
    """Describe an operator within a sentence: `the aggregation of 'per_minute'`."""
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
        case WatermarkOperator():
            name = "the watermark"
        case Read():
            return f"source '{operator.source}'" if operator.source else f"a {operator.format} source"
        case _:
            name = f"the {operator.node.lower()}" if operator.node else "an operator"
    if operator.view:
        return f"{name} of '{operator.view}'"
    source_names = {child.source for child in operator.walk() if isinstance(child, Read) and child.source}
    return f"{name} of '{source_names.pop()}'" if len(source_names) == 1 else name
