"""Decode values in JSON and CSV, and find malformed ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from millstream.pipeline.model import Format

if TYPE_CHECKING:
    from pyspark.sql import Column

    from millstream.pipeline.model import SourceEntry

_CORRUPT = "_corrupt_record"
# The message as text.
_TEXT = "CAST(`value` AS STRING)"
# Spark reads the first JSON document of a value and ignores what follows, such as a second document. So the value
# becomes a field of an object that ends with a marker, which comes out only if the value was read to its end. The
# line feed ends a comment, if the options allow those.
_MARKER = "8b1fd2a4c67035ee"
_FRAME = f"""concat('{{"row":', {_TEXT}, '\n,"end":"{_MARKER}"}}')"""


def parse_text(entry: SourceEntry, parsed: str) -> tuple[Column, str]:
    """Return what parses the column `value`, and SQL for the row in the column `parsed`, the result.

    The row is NULL if the value does not consist of exactly one.
    """
    options = {**entry.options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    if entry.format is Format.JSON:
        schema = f"row STRUCT<{entry.ddl}>, end STRING, `{_CORRUPT}` STRING"
        result = F.from_json(F.expr(_FRAME), schema, options)
        row, is_read = f"{parsed}.row", f"{parsed}.end = '{_MARKER}' AND"
    else:
        result = F.from_csv(F.expr(_TEXT), f"{entry.ddl}, `{_CORRUPT}` STRING", options)
        row, is_read = parsed, ""
    return result, f"CASE WHEN {is_read} {parsed}.{_CORRUPT} IS NULL THEN {row} END"


def malformed_reason(entry: SourceEntry, row: str, more: str) -> str:
    """Return SQL for the reason why a value cannot be decoded, or NULL. `more` are clauses on decoded rows.

    It is one SQL text, because columns built one by one in Python take 230 JVM calls for each source of each start.
    """
    mismatch = "'the value does not fit the schema'"
    if entry.format is Format.JSON:
        # In brackets, because the function too may ignore what follows the first document.
        is_other = f"try_parse_json(concat('[', {_TEXT}, '\n]')) IS NULL"
        mismatch = f"CASE WHEN {is_other} THEN 'the value is not JSON' ELSE {mismatch} END"
    return f"""CASE
        WHEN `value` IS NULL THEN 'the value is null'
        WHEN length(`value`) = 0 THEN 'the value is empty'
        WHEN NOT is_valid_utf8({_TEXT}) THEN 'the value is not UTF-8'
        WHEN ({row}) IS NULL THEN {mismatch}
        {more} END"""
