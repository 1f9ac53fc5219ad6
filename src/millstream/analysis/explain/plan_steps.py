"""Describe a query's plan in sentences, in the order of its rows: each operator and its state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.analysis.explain import state_retention
from millstream.analysis.query.nondeterminism import is_stateful
from millstream.analysis.query.phrasing import format_duration, join_quoted, join_words
from millstream.analysis.query.plan_model import (
    Aggregate,
    BatchFunction,
    Deduplicate,
    Join,
    Limit,
    Read,
    Stability,
    StatefulFunction,
    StatefulOperator,
    WatermarkOperator,
)
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.analysis.query.plan_model import Expression, Operator, PlannedQuery
    from millstream.diagnostics.finding import Span

# The prefix of columns that Millstream uses between reading and decoding a source.
OURS = "_millstream_"

# Operators that only name or count rows.
_HIDDEN_NODES = frozenset(
    {"SubqueryAlias", "View", "CollectMetrics", "LeafNode", "Subquery", "WithCTE", "CTERelationRef"}
)

_JOIN_VERBS = {
    "inner": "pairs rows of",
    "cross": "pairs every row of",
    "left_outer": "keeps every row of the left side of",
    "right_outer": "keeps every row of the right side of",
    "full_outer": "keeps every row of both sides of",
    "left_semi": "keeps the matched rows of",
    "left_anti": "keeps the unmatched rows of",
}


@dataclass(frozen=True)
class StateDescription:
    """The state of an operator: its entries, their removal, its bound, late rows, and the time of output."""

    entry: str
    leaves: str
    growth: str
    late: str = ""
    comes: str = ""


@dataclass(frozen=True)
class PlanStep:
    """One operator, described in a plain sentence without a full stop."""

    text: str
    span: Span | None
    operator: Operator
    state: StateDescription | None = None
    notes: tuple[str, ...] = ()

    def plain(self) -> dict[str, Any]:
        """Return the form in the JSON of `explain --json`."""
        state = None
        if self.state:
            state = {
                "entry": self.state.entry,
                "leaves": self.state.leaves,
                "growth": self.state.growth,
                "late": self.state.late or None,
                "comes_out": self.state.comes or None,
            }
        return {
            "text": self.text,
            "file": self.span.file if self.span else None,
            "line": self.span.line if self.span else None,
            "state": state,
            "notes": list(self.notes),
        }


def list_steps(query: PlannedQuery) -> list[PlanStep]:
    """List the operators that change rows, from the sources to the sinks; an input read twice is listed twice."""
    return list(_list_steps(query.root, query.output_mode))


def _list_steps(operator: Operator, mode: OutputMode, parent: Operator | None = None) -> Iterator[PlanStep]:
    for child in operator.inputs:
        yield from _list_steps(child, mode, operator)
    # Spark plans a union of more than two inputs as nested unions of two.
    text = "" if parent and parent.node == operator.node == "Union" else describe_step(operator, mode)
    if not text:
        return
    state = None
    if isinstance(operator, StatefulOperator) and is_stateful(operator):
        state = StateDescription(
            state_retention.describe_entry(operator),
            state_retention.describe_removal(operator, mode),
            state_retention.BOUND[operator.growth],
            state_retention.describe_late_row(operator, mode),
            state_retention.describe_output_time(operator, mode),
        )
    yield PlanStep(text, operator.span, operator, state, tuple(_list_notes(operator)))


def describe_step(operator: Operator, mode: OutputMode) -> str:
    """Describe the effect of an operator on the rows; empty for an operator that only names them."""
    match operator:
        case Read():
            return _describe_read(operator)
        case WatermarkOperator():
            return (
                f"accepts rows up to {format_duration(operator.delay)} older than the newest "
                f"'{operator.event_time}'"
            )
        case Aggregate():
            return _describe_aggregate(operator)
        case Deduplicate():
            key_names = join_words(state_retention.name_keys(operator.keys))
            suffix = " within the watermark" if operator.is_within_watermark else ""
            return f"keeps the first row of each {key_names}{suffix}"
        case Join():
            return _describe_join(operator)
        case StatefulFunction():
            keys = (
                f" for each {join_words(state_retention.name_keys(operator.keys))}" if operator.keys else ""
            )
            timeout_text = (
                f", with timeouts in {operator.timeout.replace('_', ' ')}"
                if operator.timeout != "none"
                else ""
            )
            return f"calls {operator.function or 'a function'}{keys}, which has its own state{timeout_text}"
        case BatchFunction():
            keys = (
                f" for each {join_words(state_retention.name_keys(operator.keys))}" if operator.keys else ""
            )
            return (
                f"calls {operator.function or 'a function'}{keys} on the rows of one batch, separately for "
                "each batch"
            )
        case Limit():
            rows = "some rows" if operator.rows is None else f"{operator.rows} rows"
            scope = (
                "the whole result" if mode is OutputMode.COMPLETE else "all batches together, then nothing"
            )
            return (
                f"passes the first {rows} of {scope}" if operator.is_streaming else f"takes the first {rows}"
            )
        case _:
            return _describe_other(operator)


def _describe_read(read: Read) -> str:
    if read.source is None and not read.format:
        return "takes literal rows of the query"
    name = f"'{read.source}'" if read.source else f"a {read.format} source"
    format_text = f" ({read.format})" if read.source and read.format else ""
    return f"reads {name}{format_text}" if read.is_streaming else f"reads {name}{format_text} as a table"


def _describe_aggregate(operator: Aggregate) -> str:
    computed = list(dict.fromkeys(function.text for function in operator.functions))
    computation = f" and computes {_join_some(computed)}" if computed else ""
    if not operator.keys:
        return f"groups all rows together{computation}"
    return (
        f"groups rows by {join_words(state_retention.name_keys(operator.keys, operator.window))}{computation}"
    )


def _describe_join(join: Join) -> str:
    verb = _JOIN_VERBS.get(join.how, f"joins ({join.how})")
    sides = (
        "two streams"
        if join.is_stream_stream
        else "a stream and a table"
        if join.is_streaming
        else "two tables"
    )
    condition_text = f" where {_shorten(join.condition.text)}" if join.condition else ""
    return f"{verb} {sides}{condition_text}"


def _describe_other(operator: Operator) -> str:
    if operator.node in _HIDDEN_NODES or OURS in operator.text or _belongs_to_window(operator):
        return ""
    texts = [expression.text for expression in operator.expressions]
    match operator.node:
        case "Filter":
            return f"keeps rows where {_shorten(' and '.join(texts))}"
        case "Project":
            computed = [
                _name_result(expression)
                for expression in operator.expressions
                if not _is_plain_column(expression)
            ]
            return f"computes {_join_some(computed)}" if computed else ""
        case "Union":
            return f"combines the rows of {count_union_inputs(operator)} inputs"
        case "Generate":
            return f"generates rows from {_shorten(', '.join(texts))}"
        case "Sort":
            return f"orders rows by {_shorten(', '.join(texts))}"
        case "Expand":
            return "repeats each row for every grouping set"
        case _:
            return f"runs Spark's {operator.node}"


def count_union_inputs(operator: Operator) -> int:
    """Return how many inputs a union has: Spark plans more than two as nested unions."""
    return sum(count_union_inputs(child) if child.node == "Union" else 1 for child in operator.inputs)


def _belongs_to_window(operator: Operator) -> bool:
    """Return whether Spark added the operator for `window(…)`: the window column, and the filter of NULL times."""
    if operator.node == "Expand":
        return any(_is_window(expression) for expression in operator.expressions)
    computed = [expression for expression in operator.expressions if not _is_plain_column(expression)]
    if operator.node == "Filter":
        return bool(computed) and all(expression.function == "is_not_null" for expression in computed)
    return bool(computed) and all(_is_window(expression) for expression in computed)


def _is_window(expression: Expression) -> bool:
    while expression.function == "alias" and expression.inputs:
        expression = expression.inputs[0]
    return expression.function in ("window", "session_window")


def _name_result(expression: Expression) -> str:
    """Return the alias of an expression, or the expression if it has none."""
    _, separator, name = expression.text.rpartition(" AS ")
    return f"'{name.strip('`')}'" if separator else expression.text


def _is_plain_column(expression: Expression) -> bool:
    """Return whether an expression is an unchanged column, perhaps under another name."""
    while expression.function == "alias" and expression.inputs:
        expression = expression.inputs[0]
    return expression.function in ("column", "outer")


def _join_some(texts: Sequence[str]) -> str:
    """Join the first few texts, and the number of the others."""
    first_texts = [_shorten(text, 60) for text in texts[:5]]
    return (
        join_words(first_texts)
        if len(texts) == len(first_texts)
        else f"{', '.join(first_texts)} and {len(texts) - 5} more"
    )


def _shorten(text: str, limit: int = 100) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


def _list_notes(operator: Operator) -> Iterator[str]:
    """Yield notes about an operator that are information only."""
    if isinstance(operator, WatermarkOperator):
        event_time_column = operator.column(operator.event_time)
        if event_time_column and any(
            cause.stability is Stability.BATCH for cause in event_time_column.volatile
        ):
            yield f"'{event_time_column.name}' is the time of the batch, so no row is ever late"
    if isinstance(operator, Deduplicate):
        clock_keys = [
            key.name
            for key in operator.keys
            if any(volatile.stability is Stability.BATCH for volatile in key.volatile)
        ]
        if clock_keys:
            yield f"{join_quoted(clock_keys)} is the time of the batch, so rows of two batches are never equal"
