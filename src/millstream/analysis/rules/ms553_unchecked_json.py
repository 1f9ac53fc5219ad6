"""A view decodes messages without checking whether they are valid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query.dropped_nulls import drops_undecoded
from millstream.analysis.query.throwing_expressions import find_exposed, list_columns, strip_casts
from millstream.analysis.rule_context import Code, Facts
from millstream.connectors.spark_formats import STORE_NOTHING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import Column, Operator, PlannedQuery
    from millstream.analysis.query.throwing_expressions import EvaluatedExpression
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


_WINDOW = "struct<start:timestamp"
_NULL_CHECKS = frozenset({"is_not_null", "is_null", "coalesce", "nvl", "try_parse_json", "parse_json"})


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Report `from_json`, `from_csv` and `from_avro` of a source's column, in a query that never checks for NULL.

    Conditions on a decoded column, such as `amount > 0`, drop the row of an invalid message too. A query that stores
    nothing loses nothing: there, only a failure counts.
    """
    stores_rows = not query.sinks or any(sink.kind not in STORE_NOTHING for sink in query.sinks)
    windowed = {
        id(child)
        for operator in query.walk()
        for child in operator.inputs
        if _is_filter_of_window(operator, child)
    }
    operators = [operator for operator in query.walk() if id(operator) not in windowed]
    if any(_checks_for_null(operator) for operator in operators):
        return
    drops_nulls = drops_undecoded(query, operators)
    for candidate in find_exposed(query, facts):
        call = candidate.expression
        if call.function not in ("from_json", "from_csv", "from_avro"):
            continue
        column = next((leaf for leaf in list_columns(call) if leaf.origins), None)
        # The text of a call with a long schema is cut before its options.
        literals = (str(term.value) for term in call.walk() if term.value is not None)
        options = " ".join((call.text, str(call.settings), *literals)).upper()
        is_strict = "FAILFAST" in options or (call.function == "from_avro" and "PERMISSIVE" not in options)
        stores_text = "_corrupt_record" in call.type or "COLUMNNAMEOFCORRUPTRECORD" in options
        if column is None or (stores_text and not is_strict):
            continue
        if not is_strict and (drops_nulls or not stores_rows):
            continue
        consequence = (
            "and fails at the first invalid message"
            if is_strict
            else "and an invalid message becomes a row of NULLs"
        )
        yield CODE.warning(
            f"{candidate.owner} decodes '{column.name}' with {call.function}, {consequence}",
            call.span or candidate.operator.span,
            why=_CRASHES if is_strict else _describe_loss(query, candidate, column),
            fix=_FIX if facts else "add a column _corrupt_record to the schema, and filter or route its rows",
            query=query.name,
        )


_CRASHES = "the batch with this message fails again after each restart, so no later message is ever read"
_UNCOUNTED = "Spark gives no error for such a message and does not count it"
_FIX = (
    "declare format and schema on the source; its setting on_malformed then decides what happens to invalid "
    "messages"
)


def _describe_loss(query: PlannedQuery, candidate: EvaluatedExpression, column: Column) -> str:
    """Describe what happens to an invalid message: it is lost, unless the query keeps the column with its text."""
    copies: set[str] = set()
    for operator in reversed(list(query.walk())):
        for expression in operator.expressions:
            leaf = strip_casts(expression).column
            if (
                leaf is not None
                and leaf.origins == column.origins
                and (leaf.is_copied or leaf.name in copies)
            ):
                copies.add(expression.settings.get("name", leaf.name))
    for output in query.root.columns:
        is_copy = output.is_copied or output.name in copies - candidate.decoded
        if output.origins == column.origins and is_copy:
            return f"{_UNCOUNTED}: NULLs go into the sink, with the message in '{output.name}'"
    times = {
        time.name
        for operator in query.walk()
        for expression in operator.expressions
        for node in expression.walk()
        if node.function in ("window", "session_window")
        for time in list_columns(node)
    }
    if candidate.decoded & times:
        return f"{_UNCOUNTED}: the message is lost, as a window drops rows without a time"
    return f"{_UNCOUNTED}: the message is lost, and NULLs go into the sink"


def _is_filter_of_window(operator: Operator, child: Operator) -> bool:
    """Return whether Spark added a filter for the window that an operator computes: it drops rows without a time.

    For a tumbling `window` the filter is below the operator that computes it, for a sliding one and for
    `session_window` above.
    """
    if child.node != "Filter":
        return False
    if any(source.node == "Expand" and _has_window(source) for source in child.inputs):
        return True
    below = (expression for source in child.inputs for expression in source.expressions)
    return any(node.function == "session_window" for expression in below for node in expression.walk()) or (
        operator.node == "Project"
        and _has_window(operator)
        and not _has_window(child)
        and all(condition.function == "is_not_null" for condition in child.expressions)
    )


def _has_window(operator: Operator) -> bool:
    return any(column.type.startswith(_WINDOW) for column in operator.columns)


def _checks_for_null(operator: Operator) -> bool:
    """Return whether the user's query checks for NULL in this operator."""
    return any(
        node.function in _NULL_CHECKS and (operator.view is not None or node.span is not None)
        for expression in operator.expressions
        for node in expression.walk()
    )
