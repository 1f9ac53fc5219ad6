"""What is wrong with a sink's Avro values: their schema, the id in their header, the columns that come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.connectors.source import Problem
from millstream.spec.avro import Header

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.spec.avro import Avro


def problems(form: str, value: Avro | None) -> list[Problem]:
    """No schema, a schema for another format, a header without an id."""
    if value is None:
        if form != "avro":
            return []
        return [
            Problem(
                "format", "format avro needs the schema of the values", "add avro_value: {schema: FILE.avsc}"
            )
        ]
    if form != "avro":
        return [
            Problem("avro_value", f"format {form} has no Avro schema", "set format: avro, or leave it out")
        ]
    if value.header is not Header.NONE and value.id is None:
        return [
            Problem(
                "avro_value",
                "the header of a schema registry needs the schema's id",
                "add id with the number that the registry gave the schema",
                "no registry is asked: a reader finds the schema by this id",
            )
        ]
    if value.header is Header.NONE and value.id is not None:
        return [Problem("avro_value", "without a header the id is written nowhere", "set header: confluent")]
    return []


def misfits(value: Avro, columns: Mapping[str, str]) -> list[Problem]:
    """Columns that the schema does not have, or has of another type; fields that must be there and do not come."""
    wanted, needed = value.columns, value.needed
    known = {name.lower(): name for name in wanted}
    given = {name.lower() for name in columns}
    found = [
        Problem(
            "avro_value",
            f"column '{name}' is not in the Avro schema",
            f"leave it out of the view, or choose among {', '.join(wanted)}",
        )
        for name in columns
        if name.lower() not in known
    ]
    found += [
        Problem(
            "avro_value",
            f"column '{name}' is {kind}, and the Avro schema says {wanted[known[name.lower()]]}",
            f"cast it in the view: CAST({name} AS {wanted[known[name.lower()]].upper()}) AS {name}",
        )
        for name, kind in columns.items()
        if name.lower() in known and _plain(kind) != _plain(wanted[known[name.lower()]])
    ]
    found += [
        Problem(
            "avro_value",
            f"field '{name}' of the Avro schema may not be null, and no column gives it",
            f"select {name} in the view, or let the schema allow null",
        )
        for name in wanted
        if name in needed and name.lower() not in given
    ]
    return found


def _plain(kind: str) -> str:
    """A type without case and blanks."""
    return "".join(kind.lower().split())
