"""Findings of `millstream check` about queries that would not continue from their checkpoints."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.cli.plan.plan_output import list_findings
from millstream.diagnostics.finding import Severity

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.diagnostics.finding import Finding
    from millstream.pipeline.spec_file import LoadedSpec


def find_changes(spark: SparkSession | None, loaded: LoadedSpec) -> list[Finding]:
    """Return a warning for each change that a checkpoint of the spec cannot follow, by the rules of `plan`.

    They are warnings because the spec itself is right. Without Spark, changed views are not compared. Empty if this
    user may not read the checkpoints.
    """
    from millstream.checkpoint.metadata import QueryMetadata
    from millstream.engine.recovery.restart_check import plan_restart, plan_without_spark, read_base
    from millstream.frames.build_views import build_frames

    pipeline = loaded.pipeline
    assert pipeline is not None
    try:
        queries = [
            query for query in pipeline.queries if isinstance(read_base(pipeline, query), QueryMetadata)
        ]
    except PermissionError:
        # Checkpoints are closed to other users than that of the run, who may still check the spec.
        return []
    if not queries:
        return []
    if spark is None:
        plans = [plan_without_spark(pipeline, query) for query in queries]
    else:
        frames = build_frames(spark, pipeline, queries=queries)
        plans = [plan_restart(spark, pipeline, query, frames[pipeline.reads(query)], {}) for query in queries]
    return [
        replace(finding, severity=Severity.WARNING)
        for plan in plans
        for finding in list_findings(plan, loaded)
        if finding.severity is Severity.ERROR
    ]
