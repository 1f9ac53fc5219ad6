"""A merge into a Delta table by delta-rs beside Spark's, by the rows of the batch and of the table.

    python benchmarks/small_merge.py --rounds 5

Both merge the same batches in turn, half of each batch new keys, into two copies of one table of some hundred files.
Both must end with the same rows.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

from measure import cpu_seconds  # noqa: E402 - found by the line above

from millstream.connectors.api.writer import SinkIdentity  # noqa: E402
from millstream.connectors.delta.commit import small_merge  # noqa: E402
from millstream.connectors.delta.sink import DeltaSink  # noqa: E402
from millstream.spark.session import open_session  # noqa: E402
from millstream.spec.output_mode import OutputMode  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CASES = ((50, 2), (10_000, 100), (1_000_000, 100), (1_000_000, 10_000), (4_000_000, 100), (4_000_000, 10_000))
FILES = 20


def batch(spark: SparkSession, held: int, rows: int, number: int) -> DataFrame:
    """Rows of which half have keys of the table, spread over all of it."""
    step = max(1, held // max(1, rows // 2))
    old = f"(id * {step} + {number}) % {held}"
    new = f"{held} + {number * rows} + id"
    chosen = f"CASE WHEN id < {rows // 2} THEN {old} ELSE {new} END"
    return spark.range(rows).selectExpr(f"{chosen} AS key", f"'v{number}' AS text", "id / 7.0D AS ratio")


def measure(spark: SparkSession, home: Path, held: int, rows: int, rounds: int) -> dict[str, list[Any]]:
    """Seconds and CPU seconds of each merge, by way. The first one of each way does not count."""
    sinks, writers = {}, {}
    for way in ("delta-rs", "Spark"):
        sinks[way] = DeltaSink.model_validate({"path": str(home / way), "merge_on": ["key"]})
        identity = SinkIdentity("bench", "merge", way, "delta", OutputMode.UPDATE)
        writers[way] = writer = sinks[way].writer(identity)
        table = spark.range(held).selectExpr("id AS key", "'held' AS text", "id / 7.0D AS ratio")
        table.repartition(min(FILES, max(1, held // 100))).write.format("delta").save(str(home / way))
        writer.open(spark, table.schema)
    found: dict[str, list[Any]] = {way: [] for way in sinks}
    for number in range(rounds + 1):
        for way in sinks if number % 2 else reversed(sinks):
            small_merge.MOST_ROWS = 1 << 20 if way == "delta-rs" else -1
            small_merge.MOST_TABLE_BYTES = 1 << 40
            frame = batch(spark, held, rows, number).persist()
            at, cpu = time.perf_counter(), cpu_seconds()
            result = writers[way].write(frame, number)
            found[way].append((time.perf_counter() - at, cpu_seconds() - cpu))
            assert (result.way == "delta-rs") == (way == "delta-rs"), result
            frame.unpersist()
    tables = [spark.read.format("delta").load(str(home / way)) for way in sinks]
    assert tables[0].exceptAll(tables[1]).isEmpty(), "the two ways gave different tables"
    assert tables[0].count() == tables[1].count(), "the two ways gave different tables"
    return {way: values[1:] for way, values in found.items()}


def main() -> None:
    """Measure each case, print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cases", type=int, default=len(CASES), help="Measure the first so many cases only.")
    asked = parser.parse_args()
    spark = open_session("small-merge")
    print("| rows in the table | in the batch | delta-rs, s | Spark, s | time | CPU |\n|" + " --- |" * 6)
    for held, rows in CASES[: asked.cases]:
        with tempfile.TemporaryDirectory() as home:
            found = measure(spark, Path(home), held, rows, asked.rounds)
        pairs = list(zip(found["delta-rs"], found["Spark"], strict=True))
        times = [one[0] / two[0] for one, two in pairs]
        cpu = [one[1] / max(two[1], 0.01) for one, two in pairs]
        middle = [statistics.median(value[0] for value in found[way]) for way in ("delta-rs", "Spark")]
        spread = [f"{statistics.median(of):.3f} ({min(of):.3f} to {max(of):.3f})" for of in (times, cpu)]
        print(
            f"| {held:,} | {rows:,} | {middle[0]:.3f} | {middle[1]:.3f} | {' | '.join(spread)} |", flush=True
        )


if __name__ == "__main__":
    main()
