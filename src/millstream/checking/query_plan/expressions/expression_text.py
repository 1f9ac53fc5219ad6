"""Print expressions almost as Spark does, without ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.analysis.query.plan_model import Expression

_BETWEEN = {
    "equal_to": "=",
    "equal_null_safe": "<=>",
    "less_than": "<",
    "less_than_or_equal": "<=",
    "greater_than": ">",
    "greater_than_or_equal": ">=",
    "and": "AND",
    "or": "OR",
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "remainder": "%",
    "subtract_timestamps": "-",
    "timestamp_add_interval": "+",
    "datetime_sub": "-",
    "datetime_add": "+",
}
_MAX_LENGTH = 300


def format_expression(
    function: str, entry: dict[str, Any], inputs: Sequence[Expression], value: object
) -> str:
    """Return an expression's text, truncated if it is very long."""
    text = _text(function, entry, inputs, value)
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 1]}…"


def _text(function: str, entry: dict[str, Any], inputs: Sequence[Expression], value: object) -> str:
    parts = [operand.text for operand in inputs]
    if function == "column":
        return str(entry.get("name", ""))
    if function == "literal":
        return _literal(value, str(entry.get("dataType", "")))
    if function == "alias" and parts:
        return f"{parts[0]} AS {entry.get('name', '')}"
    if function == "get_struct_field" and parts:
        return f"{parts[0]}.{entry.get('name') or _field_name(inputs[0].type, entry.get('ordinal'))}"
    if function == "cast" and parts:
        kind = entry.get("dataType")
        return f"cast({parts[0]} as {kind})" if isinstance(kind, str) else f"cast({parts[0]})"
    if function in _BETWEEN and len(parts) == 2:
        return f"({parts[0]} {_BETWEEN[function]} {parts[1]})"
    if function in ("is_null", "is_not_null") and parts:
        return f"{parts[0]} {function.replace('_', ' ').upper()}"
    if function in ("python_udf", "python_udtf"):
        function = str(entry.get("name") or function)
    if function in ("rand", "randn", "uniform", "randstr", "shuffle", "uuid"):
        # The last argument is a seed that Spark generated.
        parts = [part for part, operand in zip(parts, inputs, strict=True) if operand.type != "bigint"]
    return f"{function}({', '.join(parts)})"


def _field_name(kind: str, ordinal: object) -> object:
    """Return the name of a window's field, or the ordinal for any other struct."""
    window = kind.startswith("struct<start:timestamp,end:timestamp>") and ordinal in (0, 1)
    return ("start", "end")[int(str(ordinal))] if window else ordinal


def _literal(value: object, kind: str) -> str:
    if value is None:
        return "NULL"
    if kind.startswith("interval") and isinstance(value, int):
        return (
            f"INTERVAL '{value / 1e6:g}' SECOND"
            if "month" not in kind and "year" not in kind
            else f"{value} months"
        )
    if kind == "string":
        return f"'{value}'"
    return str(value).lower() if isinstance(value, bool) else str(value)
