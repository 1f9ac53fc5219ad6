"""A pipeline as plain data in the words of a spec, with every default filled in and every secret hidden."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from millstream.pipeline.stateful import Stateful
from millstream.spec.secret import HIDDEN, redact

if TYPE_CHECKING:
    from millstream.pipeline.kinds import KindEntry
    from millstream.pipeline.model import Pipeline, View

# Settings that pass through to a client or to Spark carry no type; their names tell which hold secrets.
_SECRET_NAME = re.compile(
    r"password|passwd|secret|token|credential|jaas|access\.?key|private\.?key", re.IGNORECASE
)


def resolved(pipeline: Pipeline) -> dict[str, Any]:
    """The spec that says all this pipeline means; reading it gives the same model but for secrets."""
    data: dict[str, Any] = json.loads(
        pipeline.model_dump_json(by_alias=True, exclude={"sources", "views", "queries"})
    )
    data["defaults"]["trigger"] = _trigger(pipeline.defaults.trigger)
    data["defaults"]["checkpoints"] = str(pipeline.checkpoints)
    box = pipeline.letters
    data["dead_letters"] = (
        box.target() if box.plain else {box.kind: json.loads(box.model_dump_json(by_alias=True))}
    )
    data["sources"] = {name: _entry(entry) for name, entry in pipeline.sources.items()}
    data["views"] = {}
    data["queries"] = {name: _query(pipeline, name) for name in pipeline.queries}
    shown: dict[str, Any] = _shown(data)
    # SQL is as it is: no variable is read in it.
    shown["views"] = {name: _view(view) for name, view in pipeline.views.items()}
    return shown


def _trigger(trigger: Any) -> Any:
    """A trigger as it is written: a word, or its one field."""
    given = {name: value for name, value in trigger.model_dump(mode="json").items() if value is not None}
    if not given:
        return "default"
    return next((name for name, value in given.items() if value is True), given)


def _entry(entry: KindEntry) -> dict[str, Any]:
    """A source or sink with its kind as the first key."""
    own = json.loads(entry.model_dump_json(by_alias=True))
    settings = own.pop(entry.kind_field)
    kind: Any = getattr(entry, entry.kind_field)
    if entry.kind_field == "source" and not kind.payload:
        # They say how messages are decoded, and these rows are none.
        for field in ("format", "keep"):
            own.pop(field, None)
    return {kind.kind: settings, **own}


def _view(view: View) -> Any:
    """A view as it is written; a function of Python by its name."""
    told: dict[str, Any]
    if view.hook is not None:
        key, made = view.hook
        told = {key: made if isinstance(made, str) else f"{made.__module__}:{made.__qualname__}"}
        if view.stateful:
            told |= _state(view)
    else:
        told = {"file": view.file} if view.file is not None else {"sql": view.sql or ""}
    if view.expect:
        return {**told, "expect": json.loads(view.model_dump_json(include={"expect"}))["expect"]}
    return told.get("sql", told)


def _state(view: View) -> dict[str, Any]:
    """What a view with state says besides its function, without what it leaves out."""
    hooks = {"transform_with_state", "apply_in_pandas_with_state"}
    fields = set(Stateful.model_fields) - hooks
    dumped = view.model_dump_json(by_alias=True, include=fields, exclude_defaults=True, exclude_none=True)
    made: dict[str, Any] = json.loads(dumped)
    return made


def _query(pipeline: Pipeline, name: str) -> dict[str, Any]:
    """A query with what it takes from elsewhere."""
    query = pipeline.queries[name]
    return {
        "from": pipeline.reads(name),
        "output_mode": query.output_mode.value,
        "trigger": _trigger(pipeline.trigger(name)),
        "checkpoint": str(pipeline.checkpoint(name)),
        "pool": pipeline.pool(name),
        "to": [_entry(entry) for entry in query.to],
    }


def _shown(value: Any, name: str = "") -> Any:
    """The value without what is not set, with secrets hidden by their name or form, and `$` as itself."""
    if isinstance(value, dict):
        return {key: _shown(item, key) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_shown(item, name) for item in value]
    if isinstance(value, str):
        return HIDDEN if _SECRET_NAME.search(name) else redact(value).replace("$", "$$")
    return value
