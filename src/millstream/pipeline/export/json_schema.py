"""Generate the JSON schema of a spec from the model and the kinds, for completion and checks in editors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticOmit, core_schema

from millstream.pipeline.introspection import OURS, fields_by_key
from millstream.pipeline.model import LettersEntry, Pipeline, SinkEntry, SourceEntry
from millstream.spec.field_docs import with_field_docs
from millstream.spec.trigger import WORDS

if TYPE_CHECKING:
    from millstream.pipeline.kinds import KindEntry
    from millstream.spec.base import Spec

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_VARIABLE = {"$ref": "#/$defs/Variable"}
_NARROW = ("enum", "const", "pattern", "format")
Schema = dict[str, Any]


class _Generator(GenerateJsonSchema):
    """Pydantic's generator, without types that a file cannot contain."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Add the docstring of each field to its property."""
        json_schema = super().model_schema(schema)
        properties = json_schema.get("properties", {})
        for key, field in fields_by_key(with_field_docs(schema["cls"])).items():
            if field.description and key in properties:
                described = {"description": field.description} | properties[key]
                properties[key] = dict(sorted(described.items()))
        return json_schema

    def callable_schema(self, schema: core_schema.CallableSchema) -> JsonSchemaValue:  # noqa: ARG002 - pydantic's
        """Leave out functions, which exist only in Python."""
        raise PydanticOmit

    def emit_warning(self, kind: Any, detail: str) -> None:
        """Ignore warnings: a default that JSON cannot represent is rightly left out."""


def json_schema() -> Schema:
    """Return the schema of `pipeline.yml`, JSON Schema 2020-12."""
    defs: Schema = {}
    schema = _model_schema(Pipeline, defs)
    for name in OURS:
        schema["properties"].pop(name, None)
    for entry in (SourceEntry, SinkEntry, LettersEntry):
        _add_kinds(entry, defs)
    dead_letters = defs["LettersEntry"]
    # A plain string is the path of the default kind.
    defs["LettersEntry"] = {
        "anyOf": [{"type": "string", "description": dead_letters["description"]}, dead_letters]
    }
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
    # The words come first, so that an editor offers them; any other text is a duration.
    words = [{"enum": list(WORDS)}, {"type": "string", "pattern": r"^\s*\d"}]
    defs["Trigger"] = {"description": defs["Trigger"]["description"], "anyOf": [*words, defs["Trigger"]]}
    schema = _allow_variables(schema)
    defs = {name: _allow_variables(definition) for name, definition in sorted(defs.items())}
    defs["Variable"] = {
        "type": "string",
        "pattern": r"\$\{[^}]+\}",
        "description": "A variable's value: ${NAME}, ${NAME:-default}, ${NAME:?message} or ${file:path}.",
    }
    return {"$schema": DIALECT, "title": "A Millstream pipeline", **schema, "$defs": defs}


def schema_of(model: type[Spec], title: str) -> Schema:
    """Return the schema of another kind of file, described by a model; a variable is allowed for any value."""
    defs: Schema = {}
    schema = _allow_variables(_model_schema(model, defs))
    defs = {name: _allow_variables(definition) for name, definition in sorted(defs.items())}
    for definition in defs.values():
        # A list or mapping may be a variable too.
        for key, property_schema in definition.get("properties", {}).items():
            annotations = {
                name: property_schema[name]
                for name in ("description", "default", "examples")
                if name in property_schema
            }
            inner = {name: value for name, value in property_schema.items() if name not in annotations}
            definition["properties"][key] = {
                **annotations,
                "anyOf": [_allow_container_variables(inner), _VARIABLE],
            }
    defs["Variable"] = {
        "type": "string",
        "pattern": r"\$\{[^}]+\}",
        "description": "A value from elsewhere: ${name}.",
    }
    return {"$schema": DIALECT, "title": title, **schema, "$defs": defs}


def _allow_container_variables(schema: Any) -> Any:
    """Return the schema with a variable allowed for each list or mapping inside it."""
    if isinstance(schema, list):
        return [_allow_container_variables(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = dict(schema)
    for key in ("items", "additionalProperties"):
        inner = schema.get(key)
        if isinstance(inner, dict) and inner.get("type") in ("array", "object"):
            result[key] = {"anyOf": [_allow_container_variables(inner), _VARIABLE]}
    if "anyOf" in schema:
        result["anyOf"] = _allow_container_variables(schema["anyOf"])
    return result


def _model_schema(model: type[Spec], defs: Schema) -> Schema:
    """Return the schema of one model; add the schemas of nested models to `defs`."""
    schema = model.model_json_schema(by_alias=True, schema_generator=_Generator)
    defs.update(schema.pop("$defs", {}))
    schema.pop("title", None)
    return schema


def _add_kinds(entry: type[KindEntry], defs: Schema) -> None:
    """Add a key for each kind to an entry's schema; exactly one of them is required."""
    schema = defs[entry.__name__]
    del schema["properties"][entry.kind_field]
    schema["required"] = [key for key in schema.get("required", ()) if key != entry.kind_field]
    kinds: Schema = {}
    for key, kind in entry.kinds().items():
        settings = _model_schema(kind, defs)
        name = f"{kind.__name__}Settings"
        defs[name] = settings
        plain_value = settings["properties"].get(_main(kind), {"type": "string"})
        forms = [
            plain_value,
            {"$ref": f"#/$defs/{name}"},
            *([] if settings.get("required") else [{"type": "null"}]),
        ]
        kinds[key] = {"description": settings.get("description", ""), "anyOf": forms}
    schema["properties"] = {**kinds, **schema["properties"]}
    schema["oneOf"] = [{"required": [key]} for key in kinds]
    if not schema["required"]:
        del schema["required"]


def _main(kind: type[Spec]) -> str:
    """Return the key of the field that a plain value sets."""
    name: str = getattr(kind, "main", "")
    field = kind.model_fields.get(name)
    return (field.alias or name) if field else name


def _allow_variables(schema: Any) -> Any:
    """Return the schema with a variable allowed wherever the type is narrower than any string."""
    if isinstance(schema, list):
        return [_allow_variables(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result: Schema = {}
    for key, value in schema.items():
        if key in ("properties", "patternProperties", "$defs"):
            result[key] = {name: _allow_variables(item) for name, item in value.items()}
        elif key in ("items", "additionalProperties", "anyOf", "oneOf", "allOf", "prefixItems"):
            result[key] = _allow_variables(value)
        elif key == "default" and (value is None or isinstance(value, dict)):
            # An editor would insert such a default in full; leaving it out means the same.
            continue
        elif key != "title":
            result[key] = value
    if "patternProperties" in result:
        result["additionalProperties"] = False
    kinds = schema.get("type")
    if kinds in ("integer", "number", "boolean") or (
        kinds in ("string", None) and any(key in schema for key in _NARROW)
    ):
        annotations = {
            key: result.pop(key) for key in ("description", "default", "examples") if key in result
        }
        return {**annotations, "anyOf": [result, _VARIABLE]}
    return result
