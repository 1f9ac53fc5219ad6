"""Convert fed rows to what a source delivers: exact names of columns, bytes, and times in the source's format."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from millstream.connectors.api.values.time_pattern import format_time, parse_zone
from millstream.pipeline.load.source_validation import known_columns
from millstream.pipeline.model import Format
from millstream.testing.files.row_parser import column_types
from millstream.testing.values.timestamps import parse_timestamp
from millstream.testing.values.type_check import FLOATS, TIMES, ParsedType, decode_base64

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.pipeline.model import SourceEntry
    from millstream.testing.model import Row

_UNKNOWN = ParsedType("")
# Names of the zone in which a test writes times.
_UTC_NAMES = ("UTC", "Etc/UTC", "GMT", "Z")
# Spark's readers of JSON and CSV accept these spellings only.
_SPECIAL_FLOATS = {
    "nan": "NaN",
    "inf": "Infinity",
    "infinity": "Infinity",
    "-inf": "-Infinity",
    "-infinity": "-Infinity",
}


def to_fed_row(entry: SourceEntry, row: Row, zone: str) -> dict[str, Any]:
    """Convert a row of a test file to what Spark reads: a test names columns in any case, Spark's readers do not.

    Text for a binary column becomes bytes, unless it is base64. `zone` is that of the session. Raises ValueError for
    a time that cannot be written in the format and the zone of the options of the source.
    """
    types = column_types(entry)
    if types is None:
        return dict(row)
    names = {name.lower(): name for name in known_columns(entry) or ()}
    # Only values that are decoded from text have a format. Columns of a file source are fed as Spark has read them.
    is_decoded = entry.source.has_payload and entry.format in (Format.JSON, Format.CSV)
    format_options = {name.lower(): value for name, value in entry.options.items()} if is_decoded else {}
    options = {"timezone": zone, **format_options}
    # The text of these columns is parsed by Spark.
    parsed = (entry.columns or ()) if is_decoded else () if entry.source.has_payload else names.values()
    result = {}
    for written_name, value in row.items():
        name = names.get(written_name.lower(), written_name)
        of = types.get(name.lower(), _UNKNOWN)
        result[name] = _to_fed_value(of, value, options if name in parsed else {})
    return result


def _to_fed_value(of: ParsedType, value: Any, options: Mapping[str, str]) -> Any:
    match of.name, value:
        case "STRUCT", dict():
            names = {name.lower(): name for name in of.fields}
            exact = {names.get(str(name).lower(), str(name)): item for name, item in value.items()}
            return {
                name: _to_fed_value(of.fields.get(name, _UNKNOWN), item, options)
                for name, item in exact.items()
            }
        case "ARRAY", list() if of.inside:
            return [_to_fed_value(of.inside[0], item, options) for item in value]
        case "MAP", dict() if of.inside:
            return {key: _to_fed_value(of.inside[1], item, options) for key, item in value.items()}
        case "BINARY", str() if decode_base64(value) is None:
            return value.encode("utf-8", "replace")
    if value is None:
        return None
    if of.name in FLOATS and isinstance(value, str):
        return _SPECIAL_FLOATS.get(value.lower(), value)
    has_zone = of.name in TIMES and of.name != "TIMESTAMPNTZ"
    pattern, zone = options.get(_format_option(of.name)), options.get("timezone", "UTC")
    if not pattern and (not has_zone or zone in _UTC_NAMES):
        return value
    try:
        time = parse_timestamp(value)
    except (ValueError, OverflowError):
        # A test in Python may feed what the source sends, or a malformed value.
        return value
    if pattern:
        return format_time(time, pattern, parse_zone(zone) if has_zone else UTC)
    # Spark would read a time without an offset in that zone.
    return value if _names_zone(value) else time.isoformat()


def _names_zone(value: Any) -> bool:
    """Return whether a valid time is text with a zone."""
    if not isinstance(value, str):
        return False
    text = value.strip()
    return text.endswith(" UTC") or datetime.fromisoformat(text).tzinfo is not None


def _format_option(name: str) -> str:
    """Return the option, in lower case, with the format of a type; empty if the type has none."""
    if name == "DATE":
        return "dateformat"
    if name == "TIMESTAMPNTZ":
        return "timestampntzformat"
    return "timestampformat" if name in TIMES else ""
