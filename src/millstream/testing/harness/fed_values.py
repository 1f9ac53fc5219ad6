"""Convert fed rows to what a source delivers: exact names of columns and of special floats, and bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.pipeline.load.source_validation import known_columns
from millstream.testing.files.row_parser import column_types
from millstream.testing.values.type_check import FLOATS, ParsedType, decode_base64

if TYPE_CHECKING:
    from millstream.pipeline.model import SourceEntry
    from millstream.testing.model import Row

_UNKNOWN = ParsedType("")
# Spark's readers of JSON and CSV accept these spellings only.
_SPECIAL_FLOATS = {
    "nan": "NaN",
    "inf": "Infinity",
    "infinity": "Infinity",
    "-inf": "-Infinity",
    "-infinity": "-Infinity",
}


def to_fed_row(entry: SourceEntry, row: Row) -> dict[str, Any]:
    """Convert a row of a test file to what Spark reads: a test names columns in any case, Spark's readers do not.

    Text for a binary column becomes bytes, unless it is base64.
    """
    types = column_types(entry)
    if types is None:
        return dict(row)
    names = {name.lower(): name for name in known_columns(entry) or ()}
    return {
        names.get(name.lower(), name): _to_fed_value(types.get(name.lower(), _UNKNOWN), value)
        for name, value in row.items()
    }


def _to_fed_value(of: ParsedType, value: Any) -> Any:
    match of.name, value:
        case "STRUCT", dict():
            names = {name.lower(): name for name in of.fields}
            exact = {names.get(str(name).lower(), name): item for name, item in value.items()}
            return {name: _to_fed_value(of.fields.get(name, _UNKNOWN), item) for name, item in exact.items()}
        case "ARRAY", list() if of.inside:
            return [_to_fed_value(of.inside[0], item) for item in value]
        case "MAP", dict() if of.inside:
            return {key: _to_fed_value(of.inside[1], item) for key, item in value.items()}
        case "BINARY", str() if decode_base64(value) is None:
            return value.encode("utf-8", "replace")
    is_special = of.name in FLOATS and isinstance(value, str)
    return _SPECIAL_FLOATS.get(value.lower(), value) if is_special else value
