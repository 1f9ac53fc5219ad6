"""A run of a pipeline that kills itself: `python dying.py SINK MODE POINT LAST LOG`.

Writes batches from 0 up to LAST, and dies by SIGKILL in the last one: `before_commit`, with the rows copied
and the transaction open, or `after_commit`, before it could tell anybody. A POINT with a dot in it is one of the
failpoints, which the environment arms.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.connectors import registry
from millstream.connectors.api.writer import SinkIdentity
from millstream.spark.session import open_session
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.api.sink import Sink
    from millstream.connectors.api.writer import Writer

ROWS = 100


def batch(spark: SparkSession, batch_id: int) -> DataFrame:
    """Rows whose ids belong to this batch alone, so that a lost or doubled batch shows."""
    first = batch_id * ROWS
    return spark.range(first, first + ROWS, numPartitions=2).selectExpr("id", "concat('row ', id) AS text")


def writer_of(sink: Sink, mode: str) -> Writer:
    """The same query and checkpoint at every start."""
    return sink.writer(
        SinkIdentity("shop", "orders", "one-checkpoint", f"{sink.kind}:orders", OutputMode(mode))
    )


def arm(writer: Any, point: str) -> None:
    """Make the next write die at that point."""
    name = "_copy" if point == "before_commit" else "_commit"
    real = getattr(writer, name)

    def step(*given: Any) -> None:
        real(*given)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(writer, name, step)


def main(settings: str, mode: str, point: str, last: int, log: str) -> None:
    kind, fields = json.loads(settings)
    spark = open_session("dying", {"spark.master": "local[2]", "spark.sql.shuffle.partitions": 2}, Path(log))
    writer = writer_of(registry.sinks()[kind].model_validate(fields), mode)
    writer.open(spark, batch(spark, 0).schema)
    for batch_id in range(last):
        writer.write(batch(spark, batch_id), batch_id)
    if "." not in point:
        arm(writer, point)
    writer.write(batch(spark, last), last)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
