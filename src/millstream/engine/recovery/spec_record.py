"""Describe the queries of a spec as if each had a checkpoint, to compare two specs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.checkpoint.metadata import QueryMetadata
from millstream.engine.recovery.checkpoint_record import build_record
from millstream.engine.recovery.source_offsets import list_origins
from millstream.engine.sink_keys import plain_sink_keys
from millstream.frames.build_views import build_frames
from millstream.plan.declared_query import declare_without_plan
from millstream.spark.recorded_settings import PINNED, UNPINNED, effective_settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from millstream.pipeline.model import Pipeline


def describe_queries(
    spark: SparkSession,
    pipeline: Pipeline,
    queries: Sequence[str],
    before: Mapping[str, QueryMetadata] | None = None,
) -> dict[str, QueryMetadata]:
    """Return the records of queries with their plans, for a comparison with `before`.

    Paths are relative to the spec's folder.
    """
    frames = build_frames(spark, pipeline, queries=queries)
    records = {}
    for query in queries:
        frame = frames[pipeline.reads(query)]
        # The id is the salt of hidden secrets.
        query_id = before[query].query_id if before and query in before else ""
        record = build_record(spark, pipeline, query, query_id, frame, list_origins(frame), {}, {})
        keys = plain_sink_keys(pipeline, query)
        record = replace(
            record,
            # The session has the settings of one spec, and this may be the other one.
            pinned=effective_settings(pipeline.spark, PINNED),
            unpinned=effective_settings(pipeline.spark, UNPINNED),
            sinks=tuple({**sink, "key": f"/{key}"} for key, sink in zip(keys, record.sinks, strict=True)),
        )
        records[query] = with_relative_paths(pipeline, record)
    return records


def declare_queries(
    pipeline: Pipeline, queries: Sequence[str], before: Mapping[str, QueryMetadata] | None = None
) -> dict[str, QueryMetadata]:
    """Return the records of queries as far as they are known without Spark, in the order of `before`'s sources."""
    records = {}
    for query in queries:
        former = (before or {}).get(query) or QueryMetadata(query, "", (), (), (), "", {}, {}, {})
        record = declare_without_plan(pipeline, query, plain_sink_keys(pipeline, query), former)
        record = replace(record, pinned=effective_settings(pipeline.spark, PINNED))
        records[query] = with_relative_paths(pipeline, record)
    return records


def with_relative_paths(pipeline: Pipeline, record: QueryMetadata) -> QueryMetadata:
    """Return the record with paths relative to the project, which has another folder in another copy."""
    folder = f"{pipeline.folder.resolve()}/"
    text = json.dumps([record.sources, record.inputs]).replace(folder, "")
    sources, inputs = json.loads(text)
    return replace(record, sources=tuple(sources), inputs=inputs)
