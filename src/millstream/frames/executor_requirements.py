"""Check that the executors of a cluster can do the work of a pipeline, before its queries start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.diagnostics.failure import NotReady
from millstream.pipeline.graph import PipelineGraph
from millstream.spark.cluster.executors import examine_executors
from millstream.spark.settings import is_local
from millstream.spec.location import Location

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.pipeline.model import Pipeline
    from millstream.spark.cluster.executors import Lack

OF_FUNCTIONS = ("pandas", "pyarrow")
"""Packages that Spark itself imports for each Python function over columns."""


def require_executors(spark: SparkSession, pipeline: Pipeline, queries: Sequence[str]) -> None:
    """Raise NotReady with all that executors lack and need for these queries. Does nothing for a local session."""
    lacks = [lack for lack in find_lacks(spark, pipeline, queries) if lack.is_fatal]
    if lacks:
        raise NotReady("; ".join(lack.what for lack in lacks), lacks[0].fix)


def find_lacks(spark: SparkSession, pipeline: Pipeline, queries: Sequence[str]) -> list[Lack]:
    """Return what the executors of a session lack for these queries: none if they are on this machine alone.

    A checkpoint or a sink in a local folder that an executor does not share with the driver would lose its rows.
    """
    context = spark.sparkContext
    if is_local(str(context.master)):
        return []
    packages = sorted({name for query in queries for name in _packages(pipeline, query)})
    folders = sorted({folder for query in queries for folder in _folders(pipeline, query)})
    return examine_executors(context, packages, folders)


def _packages(pipeline: Pipeline, query: str) -> Iterator[str]:
    """Yield the Python packages that tasks of a query import."""
    graph = PipelineGraph.of(pipeline)
    views = [pipeline.views[name] for name in graph.behind(pipeline.reads(query)) if name in pipeline.views]
    if any(view.sql is None for view in views):
        yield from OF_FUNCTIONS
    for entry in pipeline.queries[query].to:
        yield from entry.sink.task_packages


def _folders(pipeline: Pipeline, query: str) -> Iterator[Path]:
    """Yield the local folders that tasks of a query write: its checkpoint's state, dead letters, files of sinks."""
    places = [
        pipeline.checkpoint(query),
        getattr(pipeline.letters, "path", None),
        *(getattr(entry.sink, "path", None) for entry in pipeline.queries[query].to),
    ]
    for place in places:
        if isinstance(place, Location) and (folder := place.local) is not None:
            yield folder
