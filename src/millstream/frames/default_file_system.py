"""Check that Spark and Millstream take each path of a spec for the same folder, before its queries start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.diagnostics.failure import NotReady
from millstream.pipeline.graph import PipelineGraph
from millstream.spark import internals
from millstream.spec.location import Location

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from millstream.pipeline.model import Pipeline


def require_schemes(spark: SparkSession, pipeline: Pipeline, queries: Sequence[str]) -> None:
    """Raise `NotReady` for a path without a scheme, if Hadoop's default file system is not that of this machine.

    Spark would use the path on the default file system, and the parts of Millstream that do not use Spark on this
    machine.
    """
    default = str(internals.hadoop_configuration(spark).get("fs.defaultFS", "file:///"))
    if default.startswith("file:"):
        return
    for name, place in _list_places(pipeline, queries):
        if place.local is not None and not place.startswith("file:"):
            raise NotReady(
                f"{name} has the path {place} without a scheme: for Spark it is on {default} (fs.defaultFS), and for "
                "Millstream on this machine",
                f"write file:{place} or {default.rstrip('/')}{place}, or set spark.hadoop.fs.defaultFS to file:/// "
                "in the spec",
            )


def _list_places(pipeline: Pipeline, queries: Sequence[str]) -> Iterator[tuple[str, Location]]:
    """Yield the locations that Spark reads or writes for these queries, each with what it belongs to."""
    graph = PipelineGraph.of(pipeline)
    sources = sorted({source for query in queries for source in graph.sources_of(query)})
    for name in sources:
        source = pipeline.sources[name].source
        for place in (getattr(source, "path", None), getattr(source, "archive_to", None)):
            if isinstance(place, Location):
                yield f"source '{name}'", place
    for query in queries:
        for entry in pipeline.queries[query].to:
            place = getattr(entry.sink, "path", None)
            if isinstance(place, Location) and not entry.sink.is_written_without_spark:
                yield f"a sink of query '{query}'", place
    place = getattr(pipeline.letters, "path", None)
    views = {view for query in queries for view in graph.views(query)}
    if isinstance(place, Location) and any(map(pipeline.may_write_dead_letters, (*sources, *views))):
        yield "the store of dead letters", place
