"""Databricks' module `dlt` for files of a declarative project, in terms of Spark's own declarations."""

from __future__ import annotations

import inspect
import types
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark import pipelines
from pyspark.pipelines import api
from pyspark.pipelines.source_code_location import SourceCodeLocation
from pyspark.sql import SparkSession

from millstream.checking.scripts.declarative.expectations import (
    DECORATORS,
    EXPECTATIONS,
    list_expectation_settings,
)
from millstream.checking.scripts.declarative.flow_graph import DatasetKind, DeclaredDataset, DeclaredFlow
from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.interception.absent import Absent
from millstream.checking.scripts.interception.recording import Doubt

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.checking.scripts.declarative.flow_graph import FlowGraph
    from millstream.checking.scripts.interception.monkeypatch import Patches


def build_dlt_module(graph: FlowGraph) -> types.ModuleType:
    """Return the module. Its decorators declare the same datasets and flows in a graph as those of Spark."""
    module = types.ModuleType("dlt")
    values: dict[str, Any] = {
        "table": _dataset(graph, DatasetKind.TABLE),
        "materialized_view": _dataset(graph, DatasetKind.MATERIALIZED_VIEW),
        "view": _dataset(graph, DatasetKind.TEMPORARY_VIEW),
        "temporary_view": _dataset(graph, DatasetKind.TEMPORARY_VIEW),
        "append_flow": _append_flow(graph),
        "create_sink": pipelines.create_sink,
        "foreach_batch_sink": _batch_sink(graph),
        "read": lambda name: _session().read.table(name),
        "read_stream": lambda name: _session().readStream.table(name),
        "readStream": lambda name: _session().readStream.table(name),
    }
    # Former names, which the module still has.
    values |= {"create_table": values["table"], "create_view": values["view"]}
    for name in ("create_streaming_table", "create_streaming_live_table", "create_target_table"):
        values[name] = _streaming_table(graph)
    for name in (
        "apply_changes",
        "apply_changes_from_snapshot",
        "create_auto_cdc_flow",
        "create_auto_cdc_from_snapshot_flow",
    ):
        values[name] = _changes(graph)
    values |= {name: _expectation(graph, name) for name in DECORATORS}
    vars(module).update(values)
    return module


def install_extensions(graph: FlowGraph, patches: Patches) -> None:
    """Let `pyspark.pipelines` accept what only Databricks has: further settings, and further functions."""
    for name in (
        "table",
        "materialized_view",
        "temporary_view",
        "create_streaming_table",
        "append_flow",
        "create_sink",
    ):
        patches.wrap(pipelines, name, partial(_with_known_settings, graph))

    # A pipeline runs in Spark Connect, which converts rows to the types of their schema.
    patches.wrap(SparkSession, "createDataFrame", _without_verification)
    # Spark takes the frame that called its function, which is now one of the check.
    patches.set(api, "get_caller_source_code_location", lambda **_named: _user_location())

    def extension(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        graph.is_for_databricks = True
        reason = "only Databricks has it"
        return Absent(Doubt(f"{name} of pyspark.pipelines", reason, call_sites.current_span()))

    patches.set(pipelines, "__getattr__", extension)


def _without_verification(
    original: Any, session: Any, data: Any, schema: Any = None, ratio: Any = None, *_verify: Any
) -> Any:
    return original(session, data, schema, ratio, verifySchema=False)


def _user_location() -> SourceCodeLocation:
    """Return the line of the user's code that declares something."""
    frame = call_sites.find_user_frame()
    return SourceCodeLocation(*((frame.f_code.co_filename, frame.f_lineno) if frame else ("", None)))


def _with_known_settings(graph: FlowGraph, original: Any, *args: Any, **settings: Any) -> Any:
    """Call a function of Spark without the settings that Spark does not have."""
    known = inspect.signature(original).parameters
    own = {key: value for key, value in settings.items() if key in known}
    graph.is_for_databricks |= len(own) < len(settings)
    result = original(*args, **own)
    if expectations := list_expectation_settings(settings):
        graph.expect(str(settings.get("name") or next(iter(args), "")), expectations)
    return result


def _session() -> SparkSession:
    session = SparkSession.getActiveSession()
    assert session is not None
    return session


def _dataset(graph: FlowGraph, kind: DatasetKind) -> Callable[..., Any]:
    """Return a decorator, with or without arguments, for the function of a dataset."""

    def decorator(function: Any = None, *, name: str | None = None, schema: Any = None, **_named: Any) -> Any:
        def declare(query: Any) -> Any:
            code = getattr(query, "__code__", None)
            span = (
                call_sites.line_span(code.co_filename, code.co_firstlineno)
                if code
                else call_sites.current_span()
            )
            own_name = name or query.__name__
            graph.declare(DeclaredDataset(own_name, kind, span, schema))
            graph.flows.append(DeclaredFlow(own_name, own_name, query, span))
            return query

        return declare if function is None else declare(function)

    return decorator


def _batch_sink(graph: FlowGraph) -> Callable[..., Any]:
    """Return a decorator, with or without arguments, for the function that writes the batches of a sink."""

    def decorator(function: Any = None, *, name: str | None = None, **_named: Any) -> Any:
        def declare(write: Any) -> Any:
            span = call_sites.line_span(write.__code__.co_filename, write.__code__.co_firstlineno)
            sink = DeclaredDataset(name or write.__name__, DatasetKind.SINK, span, format="foreachBatch")
            graph.declare(sink)
            return write

        return declare if function is None else declare(function)

    return decorator


def _append_flow(graph: FlowGraph) -> Callable[..., Any]:
    def decorator(*, target: str, name: str | None = None, once: bool = False, **_named: Any) -> Any:
        def declare(query: Any) -> Any:
            span = call_sites.line_span(query.__code__.co_filename, query.__code__.co_firstlineno)
            flow = DeclaredFlow(name or query.__name__, target, query, span, needs_stream=not once)
            graph.flows.append(flow)
            return query

        return declare

    return decorator


def _streaming_table(graph: FlowGraph) -> Callable[..., None]:
    def create(name: str, *_args: Any, schema: Any = None, **settings: Any) -> None:
        span = call_sites.current_span()
        graph.declare(DeclaredDataset(name, DatasetKind.STREAMING_TABLE, span, schema))
        graph.expect(name, list_expectation_settings(settings))

    return create


def _changes(graph: FlowGraph) -> Callable[..., None]:
    def create(
        target: str, source: Any = None, keys: Any = (), sequence_by: Any = None, **settings: Any
    ) -> None:
        graph.changes(
            target,
            call_sites.current_span(),
            {"source": source, "keys": keys, "sequence_by": sequence_by, **settings},
        )

    return create


def _expectation(graph: FlowGraph, name: str) -> Callable[..., Any]:
    """Return a decorator that notes an expectation. It decides about rows, not about columns."""

    def decorator(*positional: Any, **named: Any) -> Callable[[Any], Any]:
        arguments = [*positional, *named.values()]

        def note(function: Any) -> Any:
            # The decorators of Spark return nothing; this one may stand above the one of the dataset.
            expected = graph.flows[-1].make if function is None and graph.flows else function
            conditions = arguments[0] if "_all" in name else {arguments[0]: arguments[1]}
            noted = expected.__dict__.setdefault(EXPECTATIONS, [])
            # A condition may be a Column, whose text is "Column<'isnotnull(id)'>".
            noted += [
                (str(label), str(condition).removeprefix("Column<'").removesuffix("'>"), name)
                for label, condition in dict(conditions).items()
            ]
            return function

        return note

    return decorator
