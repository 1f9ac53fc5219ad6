"""Build the record of what a checkpoint was written by, from a query that is about to start."""

from __future__ import annotations

import hashlib
import logging
import platform
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from millstream import __version__
from millstream.checkpoint.metadata import QueryMetadata
from millstream.engine.recovery.query_fingerprint import list_operators
from millstream.engine.sink_keys import sink_keys
from millstream.frames.plan_description.describe import describe_plan
from millstream.plan.declared_query import declare_query, describe_processors, hide_secrets
from millstream.spark import internals
from millstream.spark.recorded_settings import PINNED, UNPINNED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from millstream.checkpoint.recorded_plan import RecordedPlan
    from millstream.engine.recovery.source_offsets import Origin
    from millstream.pipeline.model import Pipeline

_log = logging.getLogger(__name__)
# Errors at an operator of Spark that the description does not know. It is needed only for a comparison.
_UNFORESEEN = (PySparkException, Py4JError, ValueError, LookupError, TypeError, AssertionError)


def build_record(
    spark: SparkSession,
    pipeline: Pipeline,
    query: str,
    query_id: str,
    frame: DataFrame,
    origins: list[Origin],
    probed: dict[str, dict[str, str]],
    since: Mapping[str, int],
    committed: int | None = None,
) -> QueryMetadata:
    """Build the record of one query, whose newest committed batch is `committed`. Secrets are hidden.

    `probed` is what each source reported about itself (topic ids). `since` is the first batch that a sink can have in
    its ledger, by the sink's key, without an entry for a sink without a ledger.
    """
    entries = pipeline.queries[query].to
    declared = declare_query(pipeline, query)
    record = QueryMetadata(
        query=query,
        query_id=query_id,
        operators=list_operators(frame),
        sources=tuple(
            _describe_source(pipeline, origin.name, probed) | {"folder": str(origin.number)}
            for origin in origins
        ),
        sinks=tuple(
            {
                "key": f"{query_id}/{key}",
                **entry.sink.identity(),
                "since": str(since.get(key, "")),
                "row_key": ", ".join(entry.sink.row_key),
            }
            for key, entry in zip(sink_keys(pipeline, query), entries, strict=True)
        ),
        output_mode=pipeline.queries[query].output_mode.value,
        pinned=_read_settings(spark, PINNED),
        unpinned=_read_settings(spark, UNPINNED),
        versions={
            "millstream": __version__,
            "spark": pyspark.__version__,
            "python": platform.python_version(),
            "java": str(internals.jvm(spark).java.lang.System.getProperty("java.version")),
        },
        code=_hash_code(pipeline),
        plan=_describe_plan(spark, pipeline, query, frame),
        views=declared.views,
        expectations=declared.expectations,
        inputs=declared.inputs,
        trigger=declared.trigger,
        params=declared.params,
        started_after=-1 if committed is None else committed,
    )
    return hide_secrets(record)


def _describe_plan(
    spark: SparkSession, pipeline: Pipeline, query: str, frame: DataFrame
) -> RecordedPlan | None:
    """Describe a query's plan, or return None for a plan of an unforeseen shape: that must not stop a run."""
    try:
        return describe_processors(pipeline, query, describe_plan(spark, frame))
    except _UNFORESEEN:
        _log.exception("the plan of query '%s' cannot be described", query)
        return None


def _describe_source(
    pipeline: Pipeline, name: str | None, probed: dict[str, dict[str, str]]
) -> dict[str, str]:
    """Describe a source of the spec. Nothing is known of a stream that a user's function opened."""
    if name not in pipeline.sources:
        return {"name": "?"}
    return {"name": name, **pipeline.sources[name].source.identity(), **probed.get(name, {})}


def _read_settings(spark: SparkSession, names: tuple[str, ...]) -> dict[str, str]:
    """Return the settings that have a value."""
    values = {name: spark.conf.get(name, None) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _hash_code(pipeline: Pipeline) -> dict[str, str]:
    """Return hashes of the spec, its SQL files and the Python files next to it."""
    folder = pipeline.folder
    files = [Path(pipeline.file)] if pipeline.file else []
    files += [*sorted(folder.glob("views/*.sql")), *sorted(folder.glob("*.py"))]
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest()[:16] for file in files if file.is_file()}
