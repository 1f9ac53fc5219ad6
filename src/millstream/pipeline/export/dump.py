"""Export a pipeline as plain data in the form of a spec, with all defaults filled in and all secrets redacted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from millstream.pipeline.stateful import StateSettings
from millstream.spec.secrets.redaction import HIDDEN, SECRET_NAME, redact, redact_values

if TYPE_CHECKING:
    from millstream.pipeline.kinds import KindEntry
    from millstream.pipeline.model import Pipeline, View


def resolve_spec(pipeline: Pipeline) -> dict[str, Any]:
    """Return the complete spec of a pipeline. Loading it gives the same model, except for secrets."""
    data: dict[str, Any] = json.loads(
        pipeline.model_dump_json(by_alias=True, exclude={"sources", "views", "queries"})
    )
    data["defaults"]["trigger"] = _trigger(pipeline.defaults.trigger)
    data["defaults"]["checkpoints"] = str(pipeline.checkpoints)
    store = pipeline.letters
    data["dead_letters"] = (
        store.target() if store.is_default else {store.kind: json.loads(store.model_dump_json(by_alias=True))}
    )
    data["sources"] = {name: _entry(entry) for name, entry in pipeline.sources.items()}
    data["views"] = {}
    data["queries"] = {name: _query(pipeline, name) for name in pipeline.queries}
    spec: dict[str, Any] = _redact(data)
    # SQL is exported unchanged, because variables are not replaced in it. They are in expectations.
    spec["views"] = {name: _view(view) for name, view in pipeline.views.items()}
    return spec


def _trigger(trigger: Any) -> Any:
    """Return a trigger as a spec contains it: a word, or its one field."""
    fields = {name: value for name, value in trigger.model_dump(mode="json").items() if value is not None}
    if not fields:
        return "default"
    return next((name for name, value in fields.items() if value is True), fields)


def _entry(entry: KindEntry) -> dict[str, Any]:
    """Return a source or sink with its kind as the first key."""
    own_settings = json.loads(entry.model_dump_json(by_alias=True))
    settings = own_settings.pop(entry.kind_field)
    kind: Any = getattr(entry, entry.kind_field)
    if entry.kind_field == "source" and not kind.has_payload:
        # These fields configure how messages are decoded, but the rows of this kind are not messages.
        for field in ("format", "keep"):
            own_settings.pop(field, None)
    return {kind.kind: settings, **own_settings}


def _view(view: View) -> Any:
    """Return a view as a spec contains it; a Python function is exported by its name."""
    entry: dict[str, Any]
    if view.hook is not None:
        key, function = view.hook
        entry = {
            key: function if isinstance(function, str) else f"{function.__module__}:{function.__qualname__}"
        }
        if view.is_stateful:
            entry |= _state(view)
    else:
        entry = {"file": view.file} if view.file is not None else {"sql": view.sql or ""}
    if view.expect:
        return {**entry, "expect": _expectations(view)}
    return entry.get("sql", entry)


def _expectations(view: View) -> dict[str, dict[str, str]]:
    """Return the expectations of a view. In SQL, `token = x` is no secret, but the value of a variable may be."""
    expectations = json.loads(view.model_dump_json(include={"expect"}))["expect"]
    return {
        name: {key: redact_values(text).replace("$", "$$") for key, text in fields.items()}
        for name, fields in expectations.items()
    }


def _state(view: View) -> dict[str, Any]:
    """Return the settings of a view with state other than its function, without defaults."""
    hooks = {"transform_with_state", "apply_in_pandas_with_state"}
    fields = set(StateSettings.model_fields) - hooks
    dumped = view.model_dump_json(by_alias=True, include=fields, exclude_defaults=True, exclude_none=True)
    settings: dict[str, Any] = json.loads(dumped)
    return settings


def _query(pipeline: Pipeline, name: str) -> dict[str, Any]:
    """Return a query including inherited settings."""
    query = pipeline.queries[name]
    return {
        "from": pipeline.reads(name),
        "output_mode": query.output_mode.value,
        "trigger": _trigger(pipeline.trigger(name)),
        "checkpoint": str(pipeline.checkpoint(name)),
        "pool": pipeline.pool(name),
        "to": [_entry(entry) for entry in query.to],
    }


def _redact(value: Any, name: str = "") -> Any:
    """Return the value without unset keys, with secrets redacted by their name or form and `$` escaped as `$$`."""
    if isinstance(value, dict):
        # The type of a column is no secret, whatever the name of the column.
        has_columns = name == "schema"
        return {
            key: _redact(item, "" if has_columns else key) for key, item in value.items() if item is not None
        }
    if isinstance(value, list):
        return [_redact(item, name) for item in value]
    # Settings that are passed through to a client or to Spark have no type; their names show which are secrets.
    if SECRET_NAME.search(name) and not isinstance(value, bool):
        return HIDDEN
    return redact(value).replace("$", "$$") if isinstance(value, str) else value
