"""What a plan says of its state, against the state of the query when it has run."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from millstream.analysis.query.plan_model import Growth, StatefulOperator
from millstream.checking.query_plan import operators

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("small_batches")

#   12:00  12:01  12:02            14:00  14:00:30  14:00:31
#     a      b      c                d       e         f       delay of 1 minute: a, b and c are long past
EARLY = ["12:00:00", "12:01:00", "12:02:00"]
LATE = ["14:00:00", "14:00:30", "14:00:31"]
JOIN = "SELECT x.id FROM x JOIN y ON x.id = y.id AND "

QUERIES = {
    "SELECT window(ts, '1 minute') AS w, count(*) AS n FROM x GROUP BY 1": "append",
    "SELECT window(ts, '1 minute').end AS e, count(*) AS n FROM x GROUP BY 1": "update",
    "SELECT DISTINCT id, ts FROM x": "append",
    JOIN + "y.ts BETWEEN x.ts AND x.ts + INTERVAL 1 MINUTE": "append",
    JOIN + "y.ts >= x.ts": "append",
    JOIN + "y.ts >= x.ts AND y.ts < CAST(CAST(x.ts AS DATE) AS TIMESTAMP) + INTERVAL 1 HOUR": "append",
    JOIN + "y.ts - x.ts BETWEEN INTERVAL 0 MINUTE AND INTERVAL 1 MINUTE": "append",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file a batch: the early rows, then each late one."""
    path = tmp_path_factory.mktemp("rows")
    for number, times in enumerate([EARLY, *([time] for time in LATE)]):
        file = path / f"{number}.json"
        rows = ({"id": f"{number}-{time}", "ts": f"2026-01-01T{time}Z"} for time in times)
        file.write_text("\n".join(json.dumps(row) for row in rows))
        os.utime(file, (1_000_000_000 + number, 1_000_000_000 + number))
    return path


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    """The rows, a file a batch."""
    reader = spark.readStream.schema("id string, ts timestamp").option("maxFilesPerTrigger", 1)
    return reader.json(str(folder)).withWatermark("ts", "1 minute")


@pytest.mark.parametrize("sql", QUERIES)
def test_early_rows_leave_the_state_where_the_plan_says_so(
    sql: str, spark: SparkSession, folder: Path, checkpoint: Path
) -> None:
    for name in ("x", "y"):
        stream(spark, folder).createOrReplaceTempView(name)
    frame = spark.sql(sql)
    (operator,) = (item for item in operators(frame).walk() if isinstance(item, StatefulOperator))

    writer = frame.writeStream.format("noop").outputMode(QUERIES[sql])
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()

    states = [progress["stateOperators"] for progress in query.recentProgress]
    total = sum(item["numRowsTotal"] for item in next(state for state in reversed(states) if state))
    sides = len(operator.inputs)
    assert (total <= len(LATE) * sides) is (operator.growth is Growth.WATERMARK)
