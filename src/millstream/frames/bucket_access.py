"""Check that Spark can write the places of a pipeline that are on S3, before its queries start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.pipeline.buckets import find_checkpoints, find_written_places
from millstream.pipeline.model import OnError
from millstream.spark.cluster.buckets import examine_conditions, examine_places

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from millstream.pipeline.model import Pipeline
    from millstream.spark.cluster.buckets import BucketRefusal


def find_refusals(
    spark: SparkSession, pipeline: Pipeline, queries: Sequence[str]
) -> list[tuple[tuple[str | int, ...], BucketRefusal]]:
    """Return why places of these queries cannot be written, one for each bucket, with a path in the spec."""
    buckets: dict[str, tuple[tuple[str | int, ...], str]] = {}
    for path, place in find_written_places(pipeline, queries):
        buckets.setdefault(place.split("/")[2], (path, str(place)))
    paths = {place: path for path, place in buckets.values()}
    refusals = [(paths[place], refusal) for place, refusal in examine_places(spark, paths)]
    if refusals:
        return refusals
    checkpoints = {place.split("/")[2]: (path, place) for path, place in find_checkpoints(pipeline, queries)}
    conditions = [(path, examine_conditions(place)) for path, place in checkpoints.values()]
    return [(path, refusal) for path, refusal in conditions if refusal is not None]


def require_buckets(spark: SparkSession, pipeline: Pipeline, queries: Sequence[str]) -> None:
    """Raise `NotReady` for the first place on S3 that cannot be written.

    A sink with `on_error: dead_letter` may be away, because its batches can be spooled.
    """
    for path, refusal in find_refusals(spark, pipeline, queries):
        if refusal.code == "MS560" and _may_be_away(pipeline, path):
            continue
        error = refusal.as_error()
        error.path = path
        raise error


def _may_be_away(pipeline: Pipeline, path: tuple[str | int, ...]) -> bool:
    """Return whether a path in the spec is that of a sink whose batches can be spooled."""
    match path:
        case ("queries", str(query), "to", int(number), *_):
            return pipeline.queries[query].to[number].on_error is OnError.DEAD_LETTER
        case _:
            return False
