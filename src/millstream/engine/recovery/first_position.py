"""Let a source with a start of `latest` begin at the same position at each start until a batch is committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.checkpoint import metadata
from millstream.frames.build_views import build_frames
from millstream.pipeline.graph import PipelineGraph

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from millstream.checkpoint.folder import Checkpoint
    from millstream.pipeline.model import Pipeline

ProbeResults = dict[str, dict[str, str]]


def fix_first_positions(
    spark: SparkSession,
    pipeline: Pipeline,
    query: str,
    checkpoint: Checkpoint,
    frame: DataFrame,
    probed: ProbeResults,
) -> tuple[DataFrame, ProbeResults]:
    """Return the frame that begins where a former start has begun, and what is known of its sources, with this.

    The checkpoint's record gets the latter, before Spark starts. Connects. Raises `NotReady` if a source does not
    respond.
    """
    if checkpoint.committed() is not None:
        return frame, probed
    record = metadata.read(checkpoint.folder)
    recorded = {source.get("name"): source for source in record.sources} if record is not None else {}
    sources = dict(pipeline.sources)
    for name in PipelineGraph.of(pipeline).sources_of(query):
        if sources[name].static:
            continue
        source, start = sources[name].source.fix_start(spark, recorded.get(name, {}))
        if start:
            probed = {**probed, name: {**probed.get(name, {}), **start}}
            sources[name] = sources[name].model_copy(update={"source": source})
    if sources == pipeline.sources:
        return frame, probed
    fixed = pipeline.model_copy(update={"sources": sources})
    return build_frames(spark, fixed, queries=[query])[pipeline.reads(query)], probed
