"""What an Avro schema says of a value: its columns in Spark's words, or why Spark cannot read it."""

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
"""An Avro schema as JSON gives it: a name, a list for a union, an object."""

# Spark's own table: org.apache.spark.sql.avro.SchemaConverters.
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
    """What stands before the value's own bytes."""

    NONE = "none"
    """Nothing."""
    CONFLUENT = "confluent"
    """A schema registry's five: a zero byte, then the id of the schema in four, the highest first."""


def _text(given: Any, info: ValidationInfo) -> str:
    """The schema as JSON on one line. Raises ValueError for a file that is not there or no schema."""
    if isinstance(given, str) and given.lstrip()[:1] not in ("{", "[", '"'):
        file = Path((info.context or {}).get("folder") or ".", given)
        try:
            given = file.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as failed:
            said = getattr(failed, "strerror", None) or "it is no UTF-8 text"
            raise ValueError(f"the Avro schema {given} cannot be read: {said}") from failed
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError as wrong:
            raise ValueError(f"the Avro schema is not JSON: {wrong}") from wrong
    columns(given)
    return json.dumps(given)


class Avro(Spec):
    """A value in Avro's binary form. No registry is asked: the schema stands here."""

    text: Annotated[
        str, BeforeValidator(_text), WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object"}]})
    ] = Field(alias="schema", examples=["clicks.avsc"])
    """The schema, a record: a file, relative to the spec, or the schema itself."""
    header: Header = Header.NONE
    """What stands before the value: `none`, or `confluent` for the five bytes of a schema registry."""
    id: int | None = Field(default=None, ge=0, lt=2**32, examples=[7])
    """The schema's id in the header: a sink writes it; a source takes no other, and any unless given."""

    @property
    def columns(self) -> dict[str, str]:
        """The columns of the record with their types in Spark's DDL."""
        return columns(json.loads(self.text))

    @property
    def needed(self) -> frozenset[str]:
        """The columns that may not be null."""
        return frozenset(one["name"] for one in json.loads(self.text)["fields"] if not _nullable(one["type"]))

    @property
    def head(self) -> bytes:
        """What a sink writes before a value; nothing without a header."""
        return b"" if self.header is Header.NONE else b"\0" + (self.id or 0).to_bytes(4)


def columns(schema: Schema) -> dict[str, str]:
    """The columns of a record with their types, as Spark reads them. Raises ValueError for what it cannot read."""
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ValueError("an Avro value is read as a record; the schema's type must be 'record'")
    reader = _Reader({})
    return dict(reader.fields(schema, str(schema.get("namespace") or ""), ()))


def _nullable(schema: Schema) -> bool:
    return schema == "null" or (isinstance(schema, list) and "null" in schema)


class _Reader:
    """Goes through a schema. `known` are the named types so far, each with its DDL."""

    def __init__(self, known: dict[str, str]) -> None:
        self.known = known

    def fields(self, record: Mapping[str, Any], space: str, inside: tuple[str, ...]) -> list[tuple[str, str]]:
        """Names and types of a record's fields. `inside` are the records around them."""
        name = self._name(record, space)
        space = name.rpartition(".")[0]
        given = record.get("fields")
        if not isinstance(given, list) or not given:
            raise ValueError(f"the Avro record '{name}' has no fields")
        found: list[tuple[str, str]] = []
        for field in given:
            called = field.get("name") if isinstance(field, dict) else None
            if not isinstance(called, str) or "type" not in field:
                raise ValueError(f"a field of the Avro record '{name}' has no name or no type")
            _fine(called)
            if called.lower() in (known.lower() for known, _ in found):
                raise ValueError(
                    f"the Avro record '{name}' has two fields '{called}'; Spark's columns have no case"
                )
            found.append((called, self.type(field["type"], space, (*inside, name), f"field '{called}'")))
        return found

    def type(self, schema: Schema, space: str, inside: tuple[str, ...], where: str) -> str:
        """A type's DDL."""
        match schema:
            case str():
                return self._named(schema, space, inside, where)
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
                    _fine(str(symbol))
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
        raise ValueError(f"{where} has no type of Avro: {json.dumps(schema)}")

    def _named(self, name: str, space: str, inside: tuple[str, ...], where: str) -> str:
        if name in _PRIMITIVE:
            return _PRIMITIVE[name]
        whole = name if "." in name or not space else f"{space}.{name}"
        if whole in inside:
            raise ValueError(
                f"{where} is of type '{name}', inside of which it stands: Spark reads no such schema"
            )
        if whole not in self.known:
            raise ValueError(
                f"{where} is of type '{name}', which Avro does not know and the schema does not define"
            )
        return self.known[whole]

    def _union(self, branches: list[Schema], space: str, inside: tuple[str, ...], where: str) -> str:
        some = [self.type(one, space, inside, where) for one in branches if one != "null"]
        if not some:
            raise ValueError(f"{where} can be nothing but null")
        if len(some) == 1:
            return some[0]
        if set(some) == {"int", "bigint"}:
            return "bigint"
        if set(some) == {"float", "double"}:
            return "double"
        return f"struct<{','.join(f'member{number}:{ddl}' for number, ddl in enumerate(some))}>"

    def _name(self, schema: Mapping[str, Any], space: str) -> str:
        name = schema.get("name")
        if not isinstance(name, str) or not name:
            raise ValueError(f"an Avro {schema.get('type')} has no name")
        for part in name.split("."):
            _fine(part)
        space = str(schema.get("namespace", space) or "")
        return name if "." in name or not space else f"{space}.{name}"

    def _keep(self, schema: Mapping[str, Any], space: str, ddl: str) -> str:
        self.known[self._name(schema, space)] = ddl
        return ddl


def _fine(name: str) -> None:
    """Raise ValueError for a name that Avro does not take."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise ValueError(f"Avro takes no name '{name}': letters, digits and _, the first no digit")


def _decimal(schema: Mapping[str, Any]) -> str | None:
    """The DDL of a logical decimal."""
    if schema.get("logicalType") != "decimal" or not isinstance(schema.get("precision"), int):
        return None
    return f"decimal({schema['precision']},{schema.get('scale', 0)})"
