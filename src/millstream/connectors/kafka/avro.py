"""Check a sink's Avro values: the schema, the id in the header, and the columns of the query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.connectors.api.values.problem import Problem
from millstream.spec.avro.schema import Header

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.spec.avro.schema import Avro


def problems(form: str, value: Avro | None) -> list[Problem]:
    """Check that the schema fits the format, and the id the header."""
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
            Problem(
                "avro_value",
                f"avro_value is set, but the format is {form}",
                "set format: avro, or remove avro_value",
            )
        ]
    if value.header is not Header.NONE and value.id is None:
        return [
            Problem(
                "avro_value",
                "a schema registry header needs the schema's id",
                "add id with the id of the schema in the registry",
                "the registry is not contacted; readers find the schema by this id",
            )
        ]
    if value.header is Header.NONE and value.id is not None:
        return [Problem("avro_value", "id has no effect without a header", "set header: confluent")]
    return []


def column_problems(value: Avro, columns: Mapping[str, str]) -> list[Problem]:
    """Find columns that the schema lacks or types differently, and required fields without a column."""
    schema_columns, required = value.columns, value.needed
    schema_names = {name.lower(): name for name in schema_columns}
    column_names = {name.lower() for name in columns}
    problems = [
        Problem(
            "avro_value",
            f"column '{name}' is not in the Avro schema",
            f"remove the column from the view, or rename it to one of {', '.join(schema_columns)}",
        )
        for name in columns
        if name.lower() not in schema_names
    ]
    problems += [
        Problem(
            "avro_value",
            f"column '{name}' is {kind}, but the Avro schema has {schema_columns[schema_names[name.lower()]]}",
            f"cast it in the view: CAST({name} AS {schema_columns[schema_names[name.lower()]].upper()}) AS {name}",
        )
        for name, kind in columns.items()
        if name.lower() in schema_names and _plain(kind) != _plain(schema_columns[schema_names[name.lower()]])
    ]
    problems += [
        Problem(
            "avro_value",
            f"field '{name}' of the Avro schema is not nullable, and no column provides it",
            f"select {name} in the view, or make the field nullable in the schema",
        )
        for name in schema_columns
        if name in required and name.lower() not in column_names
    ]
    return problems


def _plain(kind: str) -> str:
    """Return the type in lower case without whitespace."""
    return "".join(kind.lower().split())
