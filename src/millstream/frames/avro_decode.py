"""Decode values in Avro's binary form, and find malformed ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from millstream.spec.avro.schema import Header

if TYPE_CHECKING:
    from pyspark.sql import Column

    from millstream.pipeline.model import SourceEntry
    from millstream.spec.avro.schema import Avro

# Avro's bytes contain neither their length nor their type. A permissive reader returns a row of nulls for bytes that
# it cannot read, which may also be a good row, and ignores what is left after a row. So eight bytes are appended to
# each value and read as one more field: they come out unchanged if the value was read to its end.
_END_MARKER = "8b1fd2a4c67035ee"


def parse_avro(entry: SourceEntry, parsed: str) -> tuple[Column, str]:
    """Return what parses the column `value` with its end marker, and SQL for the row in the column `parsed`.

    The row is NULL if the value is unreadable.
    """
    assert entry.avro_value is not None, "a source without a schema is refused"
    schema = {
        "type": "record",
        "name": "millstream_framed",
        "fields": [
            {"name": "row", "type": json.loads(entry.avro_value.text)},
            {
                "name": "end",
                "type": {"type": "fixed", "name": "millstream_end", "size": len(_END_MARKER) // 2},
            },
        ],
    }
    body = "`value`" if entry.avro_value.header is Header.NONE else "substring(`value`, 6)"
    text = json.dumps(schema).replace("\\", "\\\\").replace("'", "\\'")
    framed = F.expr(f"from_avro(concat({body}, X'{_END_MARKER}'), '{text}', map('mode', 'PERMISSIVE'))")
    return framed, f"CASE WHEN {parsed}.end = X'{_END_MARKER}' THEN {parsed}.row END"


def malformed_reason(entry: SourceEntry, row: str, more: str) -> str:
    """Return SQL for the reason why a value cannot be decoded, or NULL. `more` are clauses on decoded rows."""
    assert entry.avro_value is not None, "a source without a schema is refused"
    return f"""CASE
        WHEN `value` IS NULL THEN 'the value is null'
        WHEN length(`value`) = 0 THEN 'the value is empty'
        {_header_clauses(entry.avro_value)}
        WHEN ({row}) IS NULL THEN 'the value does not fit the Avro schema'
        {more} END"""


def _header_clauses(avro: Avro) -> str:
    """Return the clauses on a schema registry's header."""
    if avro.header is Header.NONE:
        return ""
    missing_header = """
        WHEN length(`value`) < 5 OR substring(`value`, 1, 1) != X'00'
        THEN 'the value has no header of a schema registry'"""
    if avro.id is None:
        return missing_header
    return f"""{missing_header}
        WHEN substring(`value`, 2, 4) != X'{avro.id:08x}'
        THEN concat('the value is of schema ', conv(hex(substring(`value`, 2, 4)), 16, 10), ', not {avro.id}')"""
