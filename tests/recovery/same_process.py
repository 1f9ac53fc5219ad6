"""Commands over a project in the process and the session of the tests: what is not killed needs no JVM of its own."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

from millstream.engine.delivery.spool_replay import replay
from millstream.engine.delivery.undelivered import check_start
from millstream.engine.events.event_bus import EventBus
from millstream.engine.run import RunOptions, lock_checkpoints, run_pipeline
from millstream.pipeline.spec_file import load_spec

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.pipeline.model import Pipeline


def pipeline_of(folder: Path, **variables: str) -> Pipeline:
    """The pipeline of a folder, with these variables."""
    loaded = load_spec(folder / "pipeline.yml", {**os.environ, **variables})
    assert loaded.pipeline is not None, loaded.findings
    return loaded.pipeline


def catch_up(spark: SparkSession, folder: Path, **variables: str) -> None:
    """`millstream run --until-caught-up`. Raises what the command would print."""
    pipeline, events = pipeline_of(folder, **variables), EventBus()
    with ExitStack() as locks:
        locks.callback(events.close)
        lock_checkpoints(pipeline, list(pipeline.queries), locks)
        check_start(pipeline, list(pipeline.queries))
        assert run_pipeline(spark, pipeline, RunOptions(until_caught_up=True), events, {})


def replay_all(spark: SparkSession, folder: Path, **variables: str) -> None:
    """`millstream deadletter replay`."""
    pipeline = pipeline_of(folder, **variables)
    with ExitStack() as locks:
        lock_checkpoints(pipeline, list(pipeline.queries), locks)
        replay(spark, pipeline, list(pipeline.queries), None, lambda *_: None)
