"""The JSON schema of a spec, from the model and the kinds: what editors complete, explain and underline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticOmit, core_schema

from millstream.pipeline.describe import OURS, fields
from millstream.pipeline.model import LettersEntry, Pipeline, SinkEntry, SourceEntry
from millstream.spec.documented import documented
from millstream.spec.trigger import WORDS

if TYPE_CHECKING:
    from millstream.pipeline.kinds import KindEntry
    from millstream.spec.base import Spec

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_VARIABLE = {"$ref": "#/$defs/Variable"}
_NARROW = ("enum", "const", "pattern", "format")
Schema = dict[str, Any]


class _Generator(GenerateJsonSchema):
    """As pydantic does, without what a file cannot hold."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Each property with the docstring of its field."""
        made = super().model_schema(schema)
        properties = made.get("properties", {})
        for key, field in fields(documented(schema["cls"])).items():
            if field.description and key in properties:
                told = {"description": field.description} | properties[key]
                properties[key] = dict(sorted(told.items()))
        return made

    def callable_schema(self, schema: core_schema.CallableSchema) -> JsonSchemaValue:  # noqa: ARG002 - pydantic's
        """A function stands in Python only."""
        raise PydanticOmit

    def emit_warning(self, kind: Any, detail: str) -> None:
        """A default that JSON cannot hold is left out, which is right."""


def json_schema() -> Schema:
    """The schema of `pipeline.yml`, JSON Schema 2020-12."""
    defs: Schema = {}
    whole = _of(Pipeline, defs)
    for name in OURS:
        whole["properties"].pop(name, None)
    for entry in (SourceEntry, SinkEntry, LettersEntry):
        _put_kinds(entry, defs)
    letters = defs["LettersEntry"]
    # A bare path is the plain kind's.
    defs["LettersEntry"] = {"anyOf": [{"type": "string", "description": letters["description"]}, letters]}
    view, query = defs["View"], defs["Query"]["properties"]
    defs["View"] = {
        "anyOf": [{"type": "string", "description": view["properties"]["sql"]["description"]}, view]
    }
    expectation = defs["Expectation"]
    that = expectation["properties"]["that"]["description"]
    defs["Expectation"] = {"anyOf": [{"type": "string", "description": that}, expectation]}
    items = query["to"].pop("items")
    query["to"] = {
        "description": query["to"].get("description", ""),
        "anyOf": [items, {**query["to"], "items": items}],
    }
    for key in [key for key in query["to"]["anyOf"][1] if key in ("description", "title")]:
        del query["to"]["anyOf"][1][key]
    # The words stand first, so that an editor offers them; any other text is a length of time.
    words = [{"enum": list(WORDS)}, {"type": "string", "pattern": r"^\s*\d"}]
    defs["Trigger"] = {"description": defs["Trigger"]["description"], "anyOf": [*words, defs["Trigger"]]}
    whole = _open(whole)
    defs = {name: _open(one) for name, one in sorted(defs.items())}
    defs["Variable"] = {
        "type": "string",
        "pattern": r"\$\{[^}]+\}",
        "description": "A variable's value: ${NAME}, ${NAME:-default}, ${NAME:?message} or ${file:path}.",
    }
    return {"$schema": DIALECT, "title": "A Millstream pipeline", **whole, "$defs": defs}


def schema_of(model: type[Spec], title: str) -> Schema:
    """The schema of a file of another form, whose keys are those of a model; a variable may stand for any value."""
    defs: Schema = {}
    whole = _open(_of(model, defs))
    defs = {name: _open(one) for name, one in sorted(defs.items())}
    for one in defs.values():
        # A list or mapping may come from elsewhere as well.
        for key, held in one.get("properties", {}).items():
            beside = {name: held[name] for name in ("description", "default", "examples") if name in held}
            inner = {name: value for name, value in held.items() if name not in beside}
            one["properties"][key] = {**beside, "anyOf": [_whole(inner), _VARIABLE]}
    defs["Variable"] = {
        "type": "string",
        "pattern": r"\$\{[^}]+\}",
        "description": "A value from elsewhere: ${name}.",
    }
    return {"$schema": DIALECT, "title": title, **whole, "$defs": defs}


def _whole(schema: Any) -> Any:
    """The schema with a variable allowed for a list or mapping inside of it."""
    if isinstance(schema, list):
        return [_whole(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = dict(schema)
    for key in ("items", "additionalProperties"):
        held = schema.get(key)
        if isinstance(held, dict) and held.get("type") in ("array", "object"):
            made[key] = {"anyOf": [_whole(held), _VARIABLE]}
    if "anyOf" in schema:
        made["anyOf"] = _whole(schema["anyOf"])
    return made


def _of(model: type[Spec], defs: Schema) -> Schema:
    """The schema of one model; the models in it go into `defs`."""
    schema = model.model_json_schema(by_alias=True, schema_generator=_Generator)
    defs.update(schema.pop("$defs", {}))
    schema.pop("title", None)
    return schema


def _put_kinds(entry: type[KindEntry], defs: Schema) -> None:
    """Give an entry's schema a key for each kind, of which exactly one must be there."""
    schema = defs[entry.__name__]
    del schema["properties"][entry.kind_field]
    schema["required"] = [key for key in schema.get("required", ()) if key != entry.kind_field]
    kinds: Schema = {}
    for key, kind in entry.kinds().items():
        own = _of(kind, defs)
        name = f"{kind.__name__}Settings"
        defs[name] = own
        bare = own["properties"].get(_main(kind), {"type": "string"})
        forms = [bare, {"$ref": f"#/$defs/{name}"}, *([] if own.get("required") else [{"type": "null"}])]
        kinds[key] = {"description": own.get("description", ""), "anyOf": forms}
    schema["properties"] = {**kinds, **schema["properties"]}
    schema["oneOf"] = [{"required": [key]} for key in kinds]
    if not schema["required"]:
        del schema["required"]


def _main(kind: type[Spec]) -> str:
    """The key of the field that a bare value stands for."""
    name: str = getattr(kind, "main", "")
    field = kind.model_fields.get(name)
    return (field.alias or name) if field else name


def _open(schema: Any) -> Any:
    """The schema with a variable allowed wherever something narrower than any text stands."""
    if isinstance(schema, list):
        return [_open(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    opened: Schema = {}
    for key, value in schema.items():
        if key in ("properties", "patternProperties", "$defs"):
            opened[key] = {name: _open(one) for name, one in value.items()}
        elif key in ("items", "additionalProperties", "anyOf", "oneOf", "allOf", "prefixItems"):
            opened[key] = _open(value)
        elif key == "default" and (value is None or isinstance(value, dict)):
            # An editor would write it out in full; that nothing is there says as much.
            continue
        elif key != "title":
            opened[key] = value
    if "patternProperties" in opened:
        opened["additionalProperties"] = False
    kinds = schema.get("type")
    if kinds in ("integer", "number", "boolean") or (
        kinds in ("string", None) and any(key in schema for key in _NARROW)
    ):
        beside = {key: opened.pop(key) for key in ("description", "default", "examples") if key in opened}
        return {**beside, "anyOf": [opened, _VARIABLE]}
    return opened
