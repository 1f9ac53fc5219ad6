"""Interpreted plans beside generated code, by the rows of a batch: where the one becomes cheaper than the other.

    python benchmarks/code_generation.py --rounds 5

A stream of JSON files with a watermark, deduplication and a window, one file a batch. Batches of one size run in turn
in both ways, in one warm JVM; CPU seconds are those of the JVM, which the compilers of both kinds are part of.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

from measure import children, cpu_seconds  # noqa: E402 - found by the line above

from millstream.spark.session import open_session  # noqa: E402
from millstream.spark.streaming.code_generation import INTERPRETED  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SIZES = (100, 1_000, 10_000, 50_000, 200_000)
GENERATED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
WAYS = {"interpreted": INTERPRETED, "generated": GENERATED}


def write_file(folder: Path, number: int, rows: int) -> None:
    """A file of records whose event times move on with each file."""
    with (folder / f"half-{number}").open("w") as out:
        for row in range(rows):
            at = f"2026-01-{1 + number // 24:02d}T{number % 24:02d}:{row % 60:02d}:00Z"
            record = {"id": f"{number}-{row}", "kind": f"k{row % 5}", "value": row, "at": at}
            out.write(json.dumps(record) + "\n")
    (folder / f"half-{number}").rename(folder / f"{number:05}.json")


def measure(spark: SparkSession, rows: int, rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Seconds and CPU seconds of each batch, by way. The first two of each way do not count."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in WAYS}
    names = list(WAYS)
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home, "in")
        folder.mkdir()
        for number in range(2 * (rounds + 2)):
            write_file(folder, number, rows)
        stream = spark.readStream.schema("id STRING, kind STRING, value BIGINT, at TIMESTAMP")
        events = stream.option("maxFilesPerTrigger", 1).json(str(folder)).withWatermark("at", "1 hour")
        counted = events.dropDuplicatesWithinWatermark(["id"]).groupBy("kind", "at").count()
        state = {"at": 0.0, "cpu": 0.0}

        def take(batch: DataFrame, batch_id: int) -> None:
            batch.write.format("noop").mode("overwrite").save()
            at, cpu = time.perf_counter(), cpu_seconds()
            found[names[batch_id % 2]].append((at - state["at"], cpu - state["cpu"]))
            state.update(at=at, cpu=cpu)
            for key, value in WAYS[names[(batch_id + 1) % 2]].items():
                batch.sparkSession.conf.set(key, value)

        for key, value in WAYS[names[0]].items():
            spark.conf.set(key, value)
        writer = counted.writeStream.outputMode("update").foreachBatch(take)
        state.update(at=time.perf_counter(), cpu=cpu_seconds())
        writer.option("checkpointLocation", f"{home}/c").trigger(availableNow=True).start().awaitTermination()
    return {name: values[2 : rounds + 2] for name, values in found.items()}


def main() -> None:
    """Measure each size, print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    asked = parser.parse_args()
    before = children()
    spark = open_session("code-generation", {"spark.sql.streaming.noDataMicroBatches.enabled": "false"})
    assert children() - before, "the JVM is a child of this process"
    print(
        "| records | interpreted, CPU s | generated, CPU s | interpreted / generated |\n| --- | --- | --- | --- |"
    )
    for rows in asked.sizes:
        found = measure(spark, rows, asked.rounds)
        cpu = {name: [used for _, used in values] for name, values in found.items()}
        ratios = [one / two for one, two in zip(cpu["interpreted"], cpu["generated"], strict=True) if two]
        cells = [f"{statistics.median(cpu[name]):.2f}" for name in WAYS]
        spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        print(f"| {rows:,} | {' | '.join(cells)} | {spread} |", flush=True)


if __name__ == "__main__":
    main()
