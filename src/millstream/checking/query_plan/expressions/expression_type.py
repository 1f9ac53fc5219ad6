"""Read the type of an expression, which Spark's JSON has only for columns, literals, casts and some functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millstream.checking.query_plan.expressions.expressions import ParsedExpression

# Expressions whose type is in the field of their schema.
DECODERS = {"JsonToStructs", "CsvToStructs"}
# Functions that always return the same type, of those whose results are often converted to another one.
_TYPES: dict[str, Any] = {
    **dict.fromkeys(
        (
            "Concat",
            "ConcatWs",
            "FromUnixTime",
            "GetJsonObject",
            "InitCap",
            "Left",
            "Lower",
            "Overlay",
            "RegExpExtract",
            "RegExpReplace",
            "Right",
            "SplitPart",
            "StringReplace",
            "StringTranslate",
            "StringTrim",
            "StringTrimBoth",
            "StringTrimLeft",
            "StringTrimRight",
            "Substring",
            "SubstringIndex",
            "Upper",
        ),
        "string",
    ),
    "StringSplit": {"type": "array", "elementType": "string"},
    "SecondsToTimestamp": "timestamp",
    "MillisToTimestamp": "timestamp",
    "MicrosToTimestamp": "timestamp",
}
# They have the type of their first input.
_ALIKE = ("Coalesce", "Nvl", "KnownNullable", "Alias")


def read_type(parsed: ParsedExpression) -> Any:
    """Return the type of an expression as Spark's JSON has it, or None if it is not known."""
    entry, inputs = parsed.entry, parsed.inputs
    if parsed.kind in DECODERS:
        return entry.get("schema")
    if (data_type := entry.get("dataType")) is not None or not inputs:
        return data_type
    if parsed.kind in _ALIKE:
        return read_type(inputs[0])
    if parsed.kind == "GetStructField":
        return _part(read_type(inputs[0]), int(entry.get("ordinal", -1)))
    if parsed.kind in ("GetArrayItem", "GetMapValue", "ElementAt"):
        return _part(read_type(inputs[0]))
    return _TYPES.get(parsed.kind)


def _part(kind: Any, ordinal: int = -1) -> Any:
    """Return the type of a struct's field, or of the elements of an array or the values of a map."""
    match kind:
        case {"type": "struct", "fields": list(fields)} if 0 <= ordinal < len(fields):
            return fields[ordinal].get("type")
        case {"type": "array", "elementType": element}:
            return element
        case {"type": "map", "valueType": value}:
            return value
        case _:
            return None
