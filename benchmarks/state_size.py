"""What a small batch costs as the state grows: the same batches over a state of ten thousand keys and of millions.

    python benchmarks/state_size.py [--keys 10000 1000000 3000000] [--rounds 3] [--rocksdb]

A query drops duplicates by a key. One batch brings all the keys, and then `--batches` batches of 500 rows follow,
half of them new. Seconds are those of Spark's `triggerExecution`, of these batches alone; memory is the largest
resident size of the JVM.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure import children

from millstream.engine.events.event_bus import Event, EventBus
from millstream.engine.run import RunOptions, run_pipeline
from millstream.pipeline.model import Pipeline
from millstream.pipeline.stateful import ROCKSDB, STORE
from millstream.spark.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 500
# The first small batches after the large one meet a store that still writes its snapshot.
SKIPPED = 5


def write_files(spark: SparkSession, folder: Path, keys: int, batches: int) -> None:
    """A file of all keys, and one for each small batch, of which half the rows have keys that came before."""
    columns = ("concat('user-', id) AS user_id", "timestamp_seconds(1767225600) AS at")
    for number in range(batches + 1):
        first = keys + (number - 2) * ROWS // 2
        ids = (first, first + ROWS) if number else (0, keys)
        rows = spark.range(*ids, numPartitions=1)
        place = folder / f"{number}.tmp"
        rows.selectExpr(*columns).write.parquet(str(place))
        (part,) = place.glob("part-*.parquet")
        part.rename(folder / "rows" / f"{number:05}.parquet")


def run_once(
    spark: SparkSession, folder: Path, keys: int, batches: int, settings: dict[str, Any]
) -> list[float]:
    """Seconds of each small batch that counts."""
    (folder / "rows").mkdir(parents=True)
    write_files(spark, folder, keys, batches)
    spec: dict[str, Any] = {
        "name": "state-size",
        "spark": settings,
        "sources": {
            "users": {
                "parquet": {"path": str(folder / "rows"), "max_files_per_trigger": 1},
                "schema": {"user_id": "string", "at": "timestamp"},
                "watermark": {"event_time": "at", "delay_threshold": "30 days"},
                "drop_duplicates_within_watermark": ["user_id"],
            }
        },
        "queries": {"users": {"to": {"parquet": str(folder / "out")}}},
        "folder": folder,
    }
    seconds: dict[int, float] = {}
    events = EventBus()

    def note(event: Event) -> None:
        if event.event == "batch_committed":
            seconds[event.data["batch"]] = event.data["duration_ms"]["triggerExecution"] / 1000

    events.listen(note)
    pipeline = Pipeline.model_validate(spec, context={"folder": folder})
    result = run_pipeline(spark, pipeline, RunOptions(until_caught_up=True), events, {})
    events.close()
    rows = spark.read.parquet(str(folder / "out")).count()
    if not result or rows != (expected := keys + batches * ROWS // 2):
        raise SystemExit(f"{rows} rows came of {expected}")
    return [seconds[batch] for batch in sorted(seconds) if batch > SKIPPED]


def resident() -> float:
    """The largest resident size of the JVM, in MiB."""
    peaks = []
    for pid in children():
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                peaks.append(int(line.split()[1]) / 1024)
    return max(peaks)


def main() -> None:
    """Measure each size in turn, report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--keys", type=int, nargs="+", default=[10_000, 1_000_000, 3_000_000])
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rocksdb", action="store_true", help="Keep the state in RocksDB.")
    asked = parser.parse_args()
    settings: dict[str, Any] = {STORE: ROCKSDB} if asked.rocksdb else {}
    found: dict[int, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="millstream-state-") as scratch:
        spark = open_session("bench", {"spark.master": "local[2]"}, Path(scratch) / "spark.log")
        for turn in range(asked.rounds):
            for keys in asked.keys:
                times = run_once(spark, Path(scratch) / f"{turn}-{keys}", keys, asked.batches, settings)
                found.setdefault(keys, []).append(statistics.median(times))
                print(
                    f"round {turn + 1}, {keys:>9,} keys: {statistics.median(times):.2f} s a batch", flush=True
                )
        print(f"largest resident size of the JVM: {resident():,.0f} MiB")
        spark.stop()
    least = found[asked.keys[0]]
    for keys, times in found.items():
        ratios = [time / first for time, first in zip(times, least, strict=True)]
        print(
            f"{keys:>9,} keys: {statistics.median(times):.2f} s a batch; {statistics.median(ratios):.2f} times "
            f"that of {asked.keys[0]:,} ({min(ratios):.2f} to {max(ratios):.2f}, {asked.rounds} rounds)"
        )


if __name__ == "__main__":
    main()
