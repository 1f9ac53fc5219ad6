"""Convert Avro schemas to Spark columns, or explain why Spark cannot read them."""

from __future__ import annotations

import json
import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field, ValidationInfo, WithJsonSchema

from millstream.spec.base import Spec

if TYPE_CHECKING:
    from collections.abc import Mapping

Schema = Any
"""An Avro schema as parsed JSON: a name, a list for a union, or an object."""

# The same mapping as Spark's org.apache.spark.sql.avro.SchemaConverters.
_PRIMITIVE = {
    "null": "void",
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
}
_LOGICAL = {
    ("long", "time-micros"): "time(6)",
    ("int", "date"): "date",
    ("long", "timestamp-millis"): "timestamp",
    ("long", "timestamp-micros"): "timestamp",
    ("long", "local-timestamp-millis"): "timestamp_ntz",
    ("long", "local-timestamp-micros"): "timestamp_ntz",
}


class Header(StrEnum):
    """The header before the bytes of a value."""

    NONE = "none"
    """No header."""
    CONFLUENT = "confluent"
    """The five bytes of a schema registry: a zero byte, then the schema's id in four bytes, big-endian."""


def _text(value: Any, info: ValidationInfo) -> str:
    """Return the schema as JSON on one line. Raises ValueError for a missing file or an invalid schema."""
    if isinstance(value, str) and value.lstrip()[:1] not in ("{", "[", '"'):
        file = Path((info.context or {}).get("folder") or ".", value)
        try:
            value = file.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as os_error:
            reason = getattr(os_error, "strerror", None) or "it is not UTF-8 text"
            raise ValueError(f"the Avro schema {value} cannot be read: {reason}") from os_error
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as json_error:
            raise ValueError(f"the Avro schema is not JSON: {json_error}") from json_error
    columns_of_schema(value)
    return json.dumps(value)


class Avro(Spec):
    """A value in Avro's binary encoding. Its schema is declared here; no schema registry is contacted."""

    text: Annotated[
        str, BeforeValidator(_text), WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object"}]})
    ] = Field(alias="schema", examples=["clicks.avsc"])
    """The schema, which must be a record: a file, relative to the spec, or the schema itself."""
    header: Header = Header.NONE
    """Bytes in front of each value, as clients of a schema registry write them."""
    id: int | None = Field(default=None, ge=0, lt=2**32, examples=[7])
    """The schema's id in the header. A sink writes it; a source accepts only this id, or any id if unset."""

    @property
    def columns(self) -> dict[str, str]:
        """The columns of the record with their types in Spark's DDL."""
        return columns_of_schema(json.loads(self.text))

    @property
    def needed(self) -> frozenset[str]:
        """The columns that must not be null."""
        return frozenset(
            field["name"] for field in json.loads(self.text)["fields"] if not _is_nullable(field["type"])
        )

    @property
    def head(self) -> bytes:
        """The bytes that a sink writes before a value; empty without a header."""
        return b"" if self.header is Header.NONE else b"\0" + (self.id or 0).to_bytes(4)


def columns_of_schema(schema: Schema) -> dict[str, str]:
    """Return the columns of a record with their Spark types. Raises ValueError if Spark cannot read the schema."""
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ValueError("an Avro value is read as a record; the schema's type must be 'record'")
    reader = _Reader({})
    return dict(reader.fields(schema, str(schema.get("namespace") or ""), ()))


def _is_nullable(schema: Schema) -> bool:
    return schema == "null" or (isinstance(schema, list) and "null" in schema)


class _Reader:
    """Converts a schema to DDL. `known` contains the named types so far, each with its DDL."""

    def __init__(self, known: dict[str, str]) -> None:
        self.named_types = known

    def fields(self, record: Mapping[str, Any], space: str, inside: tuple[str, ...]) -> list[tuple[str, str]]:
        """Return names and types of a record's fields. `inside` are the enclosing records."""
        name = self._name(record, space)
        space = name.rpartition(".")[0]
        declared = record.get("fields")
        if not isinstance(declared, list) or not declared:
            raise ValueError(f"the Avro record '{name}' has no fields")
        pairs: list[tuple[str, str]] = []
        for field in declared:
            field_name = field.get("name") if isinstance(field, dict) else None
            if not isinstance(field_name, str) or "type" not in field:
                raise ValueError(f"a field of the Avro record '{name}' has no name or no type")
            _require_valid_name(field_name)
            if field_name.lower() in (known.lower() for known, _ in pairs):
                raise ValueError(
                    f"the Avro record '{name}' has two fields '{field_name}'; Spark ignores the case of names"
                )
            pairs.append(
                (field_name, self.type(field["type"], space, (*inside, name), f"field '{field_name}'"))
            )
        return pairs

    def type(self, schema: Schema, space: str, inside: tuple[str, ...], where: str) -> str:
        """Return a type's DDL."""
        match schema:
            case str():
                return self._resolve_name(schema, space, inside, where)
            case list():
                return self._union(schema, space, inside, where)
            case {"type": "record" | "error"}:
                parts = self.fields(schema, space, inside)
                return self._keep(
                    schema, space, f"struct<{','.join(f'{name}:{ddl}' for name, ddl in parts)}>"
                )
            case {"type": "enum"}:
                if not schema.get("symbols"):
                    raise ValueError(f"the enum of {where} has no symbols")
                for symbol in schema["symbols"]:
                    _require_valid_name(str(symbol))
                return self._keep(schema, space, "string")
            case {"type": "fixed"}:
                if not isinstance(schema.get("size"), int):
                    raise ValueError(f"the fixed type of {where} has no size")
                return self._keep(schema, space, _decimal(schema) or "binary")
            case {"type": "array", "items": items}:
                return f"array<{self.type(items, space, inside, where)}>"
            case {"type": "map", "values": values}:
                return f"map<string,{self.type(values, space, inside, where)}>"
            case {"type": str(kind)} if kind in _PRIMITIVE:
                logical = _LOGICAL.get((kind, str(schema.get("logicalType"))))
                return logical or (_decimal(schema) if kind == "bytes" else None) or _PRIMITIVE[kind]
            case {"type": inner} if isinstance(inner, (list, dict, str)) and inner not in ("array", "map"):
                return self.type(inner, space, inside, where)
        raise ValueError(f"the type of {where} is not an Avro type: {json.dumps(schema)}")

    def _resolve_name(self, name: str, space: str, inside: tuple[str, ...], where: str) -> str:
        if name in _PRIMITIVE:
            return _PRIMITIVE[name]
        full_name = name if "." in name or not space else f"{space}.{name}"
        if full_name in inside:
            raise ValueError(
                f"{where} is of type '{name}', which contains it: Spark cannot read recursive schemas"
            )
        if full_name not in self.named_types:
            raise ValueError(
                f"{where} is of type '{name}', which is neither an Avro type nor defined in the schema"
            )
        return self.named_types[full_name]

    def _union(self, branches: list[Schema], space: str, inside: tuple[str, ...], where: str) -> str:
        types = [self.type(branch, space, inside, where) for branch in branches if branch != "null"]
        if not types:
            raise ValueError(f"{where} can only be null")
        if len(types) == 1:
            return types[0]
        if set(types) == {"int", "bigint"}:
            return "bigint"
        if set(types) == {"float", "double"}:
            return "double"
        return f"struct<{','.join(f'member{number}:{ddl}' for number, ddl in enumerate(types))}>"

    def _name(self, schema: Mapping[str, Any], space: str) -> str:
        name = schema.get("name")
        if not isinstance(name, str) or not name:
            raise ValueError(f"an Avro {schema.get('type')} has no name")
        for part in name.split("."):
            _require_valid_name(part)
        space = str(schema.get("namespace", space) or "")
        return name if "." in name or not space else f"{space}.{name}"

    def _keep(self, schema: Mapping[str, Any], space: str, ddl: str) -> str:
        self.named_types[self._name(schema, space)] = ddl
        return ddl


def _require_valid_name(name: str) -> None:
    """Raise ValueError for a name that Avro does not accept."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise ValueError(
            f"'{name}' is not an Avro name: use letters, digits and _, and do not begin with a digit"
        )


def _decimal(schema: Mapping[str, Any]) -> str | None:
    """Return the DDL of a logical decimal."""
    if schema.get("logicalType") != "decimal" or not isinstance(schema.get("precision"), int):
        return None
    return f"decimal({schema['precision']},{schema.get('scale', 0)})"
