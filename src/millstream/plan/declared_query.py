"""What a spec declares about a query, for its checkpoint's record; found without Spark."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from millstream.checkpoint.recorded_plan import RecordedPlan
from millstream.pipeline.code_hash import hash_function
from millstream.pipeline.export.dump import resolve_spec
from millstream.pipeline.graph import PipelineGraph
from millstream.spark.recorded_settings import PINNED, UNPINNED, effective_settings
from millstream.spec.secrets.redaction import HIDDEN, REDACTOR, SECRET_NAME, hash_secret

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.checkpoint.metadata import QueryMetadata
    from millstream.pipeline.model import Pipeline, View

# A comment, or a text in quotes, in which two dashes are no comment.
_COMMENT = re.compile(r"('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`)|--[^\n]*|/\*.*?\*/", re.DOTALL)
_SPACE = re.compile(r"('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|\s+")
# Settings of a processor that its checkpoint depends on.
_PROCESSOR = ("time_mode", "timeout", "output_mode")
# Fields of a recorded plan that have no value of a parameter.
_STRUCTURE = ("fingerprint", "kind", "join_type", "view")


@dataclass(frozen=True)
class DeclaredQuery:
    """What a spec declares about one query. The fields are those of `QueryMetadata`."""

    views: dict[str, str]
    expectations: dict[str, Any]
    inputs: dict[str, dict[str, Any]]
    trigger: str
    params: dict[str, str]


def declare_query(pipeline: Pipeline, query: str) -> DeclaredQuery:
    """Return what a spec declares about a query. `params` contains secrets; `hide_secrets` hides them in a record."""
    graph = PipelineGraph.of(pipeline)
    spec = resolve_spec(pipeline)
    views = graph.views(query)
    return DeclaredQuery(
        views={name: _describe_view(pipeline, pipeline.views[name]) for name in views},
        expectations={
            name: json.loads(view.model_dump_json(include={"expect"}))["expect"]
            for name in views
            if (view := pipeline.views[name]).expect
        },
        inputs={name: spec["sources"][name] for name in graph.sources_of(query)},
        trigger=str(pipeline.trigger(query)),
        params={name: str(value) for name, value in pipeline.params.items()} if views else {},
    )


def hide_secrets(record: QueryMetadata) -> QueryMetadata:
    """Return the record with a short hash in place of each secret: of parameters, and where a plan has their values.

    The hash is salted with the checkpoint's id, so that a record differs from one of the same checkpoint if a secret
    has changed. A record without secrets stays as it is.
    """

    def hide(value: Any, name: str = "") -> Any:
        match value:
            case str() if name not in _STRUCTURE:
                return REDACTOR.hash_values(value, record.query_id)
            case dict():
                return {key: hide(item, key) for key, item in value.items()}
            case list() | tuple():
                return [hide(item, name) for item in value]
        return value

    return replace(
        record,
        operators=tuple(
            replace(operator, text=hide(operator.text), shape=hide(operator.shape))
            for operator in record.operators
        ),
        plan=None if record.plan is None else RecordedPlan.from_json(hide(record.plan.to_json())),
        expectations=hide(record.expectations),
        params={
            name: hash_secret(value, record.query_id)
            if SECRET_NAME.search(name) and not value.startswith(HIDDEN)
            else hide(value)
            for name, value in record.params.items()
        },
    )


def describe_processors(pipeline: Pipeline, query: str, plan: RecordedPlan) -> RecordedPlan:
    """Return the plan with the view of each processor and the state that the view declares."""
    # The plan lists operators from the top, the graph views from the bottom.
    names = [
        name for name in reversed(PipelineGraph.of(pipeline).views(query)) if pipeline.views[name].is_stateful
    ]
    operators = list(plan.stateful)
    for number, operator in enumerate(operators):
        if operator.kind.startswith("processor") and names:
            name = names.pop(0)
            state = _describe_state(pipeline.views[name])
            operators[number] = replace(operator, view=name, state=state)
    return replace(plan, stateful=tuple(operators))


def declare_without_plan(
    pipeline: Pipeline, query: str, keys: Sequence[str], before: QueryMetadata
) -> QueryMetadata:
    """Return the record of a query as far as it is known without Spark, for a comparison with `before`.

    Sources are at the places of `before`, because only a plan has places. Of the settings that Spark keeps in the
    checkpoint, the record has only those that the spec sets.
    """
    declared = declare_query(pipeline, query)
    streaming = {
        name: {"name": name, **pipeline.sources[name].source.identity()}
        for name in declared.inputs
        if not pipeline.sources[name].static
    }
    # A user's function may open a stream that the spec does not name.
    recorded = [
        {**streaming.get(entry["name"], entry), "folder": entry.get("folder", str(number))}
        for number, entry in enumerate(before.sources)
        if entry["name"] in streaming or entry["name"] == "?"
    ]
    names = {entry["name"] for entry in recorded}
    added = [
        {**entry, "folder": str(number)}
        for number, entry in enumerate(streaming.values(), len(before.sources))
        if entry["name"] not in names
    ]
    record = replace(
        before,
        operators=(),
        plan=None,
        sources=(*recorded, *added),
        sinks=tuple(
            {"key": f"{before.query_id}/{key}", "row_key": ", ".join(entry.sink.row_key)}
            for key, entry in zip(keys, pipeline.queries[query].to, strict=True)
        ),
        output_mode=pipeline.queries[query].output_mode.value,
        pinned=effective_settings(pipeline.spark, [name for name in PINNED if name in pipeline.spark]),
        unpinned=effective_settings(pipeline.spark, UNPINNED),
        versions={},
        views=declared.views,
        expectations=declared.expectations,
        inputs=declared.inputs,
        trigger=declared.trigger,
        params=declared.params,
    )
    return hide_secrets(record)


def _describe_view(pipeline: Pipeline, view: View) -> str:
    if view.sql is not None:
        text = _COMMENT.sub(lambda match: match[1] or " ", view.sql)
        return _SPACE.sub(lambda match: match[1] or " ", text).strip().rstrip("; ")
    assert view.hook is not None, "a view is SQL or a function"
    key, function = view.hook
    shape = json.dumps([view.from_, list(view.group_by), view.columns, _describe_state(view)], sort_keys=True)
    return f"python {key} {hash_function(function, pipeline.folder)}" + (
        f" {shape}" if view.is_stateful else ""
    )


def _describe_state(view: View) -> dict[str, Any]:
    """Return the state variables of a processor and its modes, as values of JSON."""
    data: dict[str, Any] = json.loads(view.model_dump_json(by_alias=True, include={"state", *_PROCESSOR}))
    variables = {f"state {name}": value for name, value in data.pop("state").items()}
    return {**variables, **data}
