"""Decode values in Avro's binary form, and tell those that are malformed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from millstream.spec.avro import Header

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from millstream.pipeline.model import SourceEntry
    from millstream.spec.avro import Avro

# The value with an end put behind it; the name cannot meet a user's.
_FRAMED = "_millstream_framed"
# Avro's bytes say neither where they end nor what they are. A reader in permissive mode gives a row of nulls for
# those it cannot read, which may be a good row, and passes over what is left behind a row. So eight bytes are put
# behind each value and read as one more field: they come out as they went in where the value was read to its end.
_END = "8b1fd2a4c67035ee"


def judged(entry: SourceEntry, raw: DataFrame, decoded: str) -> DataFrame:
    """`raw` with two columns more: the value and its end, and in `decoded` the row, NULL where it was not read."""
    assert entry.avro_value is not None, "a source without one is refused"
    schema = {
        "type": "record",
        "name": "millstream_framed",
        "fields": [
            {"name": "row", "type": json.loads(entry.avro_value.text)},
            {"name": "end", "type": {"type": "fixed", "name": "millstream_end", "size": len(_END) // 2}},
        ],
    }
    body = "`value`" if entry.avro_value.header is Header.NONE else "substring(`value`, 6)"
    text = json.dumps(schema).replace("\\", "\\\\").replace("'", "\\'")
    framed = F.expr(f"from_avro(concat({body}, X'{_END}'), '{text}', map('mode', 'PERMISSIVE'))")
    read = F.expr(f"CASE WHEN {_FRAMED}.end = X'{_END}' THEN {_FRAMED}.row END")
    return raw.withColumn(_FRAMED, framed).withColumn(decoded, read).drop(_FRAMED)


def reason(entry: SourceEntry, decoded: str, more: str) -> str:
    """Why a value cannot be decoded, in SQL; NULL for a good one. `more` are clauses on decoded rows."""
    assert entry.avro_value is not None, "a source without one is refused"
    return f"""CASE
        WHEN `value` IS NULL THEN 'the value is null'
        WHEN length(`value`) = 0 THEN 'the value is empty'
        {_header(entry.avro_value)}
        WHEN {decoded} IS NULL THEN 'the value does not fit the Avro schema'
        {more} END"""


def _header(avro: Avro) -> str:
    """The clauses on a schema registry's header."""
    if avro.header is Header.NONE:
        return ""
    said = """
        WHEN length(`value`) < 5 OR substring(`value`, 1, 1) != X'00'
        THEN 'the value has no header of a schema registry'"""
    if avro.id is None:
        return said
    return f"""{said}
        WHEN substring(`value`, 2, 4) != X'{avro.id:08x}'
        THEN concat('the value is of schema ', conv(hex(substring(`value`, 2, 4)), 16, 10), ', not {avro.id}')"""
