"""A run where Hadoop's default file system is not that of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.engine.recovery.checkpoint_check import check_checkpoints
from millstream.spark import internals
from millstream.state.read_state import read_store
from millstream.state.stores import list_stores
from spark.conftest import Project

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("interpreted", "small_batches")
# Nothing listens on this port.
ABSENT = "hdfs://127.0.0.1:1"


@pytest.fixture
def remote_default(spark: SparkSession) -> Iterator[None]:
    """The session's default file system is a name node that does not exist."""
    configuration = internals.hadoop_configuration(spark)
    former = configuration.get("fs.defaultFS")
    configuration.set("fs.defaultFS", ABSENT)
    yield
    configuration.set("fs.defaultFS", former)


@pytest.mark.usefixtures("remote_default")
def test_a_local_checkpoint_is_in_the_folder_that_is_locked_and_checked(
    spark: SparkSession, tmp_path: Path
) -> None:
    project = Project(tmp_path, spark)
    project.add_lines({"id": "a", "amount": 1, "at": "2026-01-01T12:01:00Z"})
    pipeline = project.pipeline(
        sources={
            "orders": {
                "json": f"file:{tmp_path}/in",
                "schema": {"id": "string", "amount": "int", "at": "timestamp"},
                "watermark": {"event_time": "at", "delay_threshold": "10 minutes"},
                "on_malformed": "drop",
            }
        },
        queries={"sums": {"output_mode": "update", "to": [{"parquet": f"file:{tmp_path}/sums"}]}},
    )

    assert project.run(pipeline)

    assert project.numbers("sums", "offsets")[0] == 0
    check_checkpoints(pipeline, ["sums"], repair=False, say=print)
    checkpoint = tmp_path / ".millstream/checkpoints/sums"
    (store,) = list_stores(spark, checkpoint, None)
    assert read_store(spark, checkpoint, store).count() == 1
