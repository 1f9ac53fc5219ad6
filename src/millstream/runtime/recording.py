"""Make the record of what a checkpoint was made by, from a query about to start."""

from __future__ import annotations

import hashlib
import platform
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from millstream import __version__
from millstream.checkpoint.record import Record
from millstream.runtime.fingerprint import operators

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from millstream.pipeline.model import Pipeline
    from millstream.runtime.origins import Origin

# Spark writes these into each offset file and lets them win over the session's (OffsetSeqMetadata, 4.2).
PINNED = (
    "spark.sql.shuffle.partitions",
    "spark.sql.streaming.stateStore.providerClass",
    "spark.sql.streaming.stateStore.compression.codec",
    "spark.sql.streaming.stateStore.rocksdb.formatVersion",
    "spark.sql.streaming.stateStore.encodingFormat",
    "spark.sql.streaming.multipleWatermarkPolicy",
    "spark.sql.streaming.aggregation.stateFormatVersion",
    "spark.sql.streaming.join.stateFormatVersion",
    "spark.sql.streaming.flatMapGroupsWithState.stateFormatVersion",
    "spark.sql.streaming.statefulOperator.useStrictDistribution",
)
# These change results as much, and Spark does not keep them.
UNPINNED = (
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
    "spark.sql.adaptive.enabled",
    "spark.sql.streaming.noDataMicroBatches.enabled",
    "spark.sql.streaming.checkpointFileManagerClass",
)


def record(
    spark: SparkSession,
    pipeline: Pipeline,
    query: str,
    query_id: str,
    frame: DataFrame,
    origins: list[Origin],
    probed: dict[str, dict[str, str]],
) -> Record:
    """The record of one query. `probed` is what each source said of itself when asked (topic ids)."""
    declared = pipeline.queries[query]
    return Record(
        query=query,
        query_id=query_id,
        operators=operators(frame),
        sources=tuple(
            _source(pipeline, origin.name, probed) | {"folder": str(origin.number)} for origin in origins
        ),
        sinks=tuple(
            {"key": f"{query_id}/{key}", **entry.sink.identity()}
            for key, entry in zip(sink_keys(pipeline, query), declared.to, strict=True)
        ),
        output_mode=declared.output_mode.value,
        pinned=_settings(spark, PINNED),
        unpinned=_settings(spark, UNPINNED),
        versions={
            "millstream": __version__,
            "spark": pyspark.__version__,
            "python": platform.python_version(),
            "java": str(spark._jvm.java.lang.System.getProperty("java.version")),  # type: ignore[union-attr]
        },
        code=_code(pipeline),
    )


def _source(pipeline: Pipeline, name: str | None, probed: dict[str, dict[str, str]]) -> dict[str, str]:
    """What a source of the spec is; of a stream that a user's function opened nothing is known."""
    if name not in pipeline.sources:
        return {"name": "?"}
    return {"name": name, **pipeline.sources[name].source.identity(), **probed.get(name, {})}


def sink_keys(pipeline: Pipeline, query: str) -> list[str]:
    """A name for each sink of a query, stable while its kind and target stay: `postgres:purchases`.

    A path inside the project is told from there, so that a project may be moved. Sinks that would have one
    name, such as a table of one name in two databases, are numbered in the order of the spec.
    """
    inside = f"{pipeline.folder}/"
    names = [
        f"{entry.sink.kind}:{entry.sink.target().removeprefix(inside)}"
        for entry in pipeline.queries[query].to
    ]
    return [
        name if (before := names[:at].count(name)) == 0 else f"{name}#{before + 1}"
        for at, name in enumerate(names)
    ]


def _settings(spark: SparkSession, names: tuple[str, ...]) -> dict[str, str]:
    """Those settings that have a value."""
    found = {name: spark.conf.get(name, None) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _code(pipeline: Pipeline) -> dict[str, str]:
    """Hashes of the spec, its SQL files and the Python files beside it."""
    folder = pipeline.folder
    files = [Path(pipeline.file)] if pipeline.file else []
    files += [*sorted(folder.glob("views/*.sql")), *sorted(folder.glob("*.py"))]
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest()[:16] for file in files if file.is_file()}
