"""What a small batch costs as the state grows: the same batches over a state of ten thousand keys and of millions.

    python benchmarks/state_size.py [--keys 10000 1000000 3000000] [--rounds 3] [--rocksdb]
    python benchmarks/state_size.py --view duplicates|totals|processor|join

A view drops duplicates by a key, with Spark's operator (`duplicates`) or with a Python class and one timer for
each key (`processor`, always in RocksDB), or it counts the rows of each key, without a watermark (`totals`), or it
joins two streams within a day (`join`). One batch brings all the keys, and then `--batches` batches of `--rows`
rows follow. Of those, half have keys of the batch before; a join gets as many more keys, and as many rows of the
other stream that match. Seconds are those of Spark's `triggerExecution`, of these batches alone; memory is the
largest resident size of the JVM. A run whose result has another number of rows has no figures.

`--set KEY=VALUE` adds a setting of Spark. With `spark.sql.streaming.join.stateFormatVersion=4` and
`spark.sql.streaming.join.stateFormatV4.enabled=true`, a join keeps its state by time. Spark 4.2 says of this format
that it is under development.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure import children
from pyspark.sql import Row

from millstream.engine.events.event_bus import Event, EventBus
from millstream.engine.run import RunOptions, run_pipeline
from millstream.pipeline.model import Pipeline
from millstream.pipeline.stateful import ROCKSDB, STORE
from millstream.spark.session import open_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

ROWS = 500
# The first small batches after the large one meet a store that still writes its snapshot.
SKIPPED = 5


DUPLICATES, TOTALS, PROCESSOR, JOIN = "duplicates", "totals", "processor", "join"
DAYS = 30
COLUMNS = {"user_id": "string", "at": "timestamp"}
# Updated totals, which no sink of files accepts, as files.
SINK = """
def store(rows, batch):
    rows.write.mode("overwrite").parquet(f"{batch.options['path']}/batch={batch}")
"""


class FirstRows:
    """The first row of each key within the watermark. `seen` and `handle` are set before the first call."""

    seen: Any
    handle: Any

    def handleInputRows(self, key: Any, rows: Iterator[Row], timers: Any) -> Iterator[Row]:  # noqa: ARG002, N802
        """Return the first of the rows of a new key."""
        if self.seen.exists():
            return
        at = next(rows).at
        self.seen.update((at,))
        self.handle.registerTimer(int(at.timestamp() * 1000) + DAYS * 86_400_000)
        yield Row(user_id=key[0], at=at)

    def handleExpiredTimer(self, key: Any, timers: Any, expired: Any) -> Iterator[Row]:  # noqa: ARG002, N802
        """Forget the key."""
        self.seen.clear()
        return iter(())


def write_files(spark: SparkSession, folder: Path, view: str, keys: int, batches: int, rows: int) -> None:
    """Write a file of all keys, and one for each small batch; for a join also the files of the other stream."""
    new = rows if view == JOIN else rows // 2
    (folder / "clicks").mkdir(parents=True)
    (folder / "rows").mkdir()
    for number in range(batches + 1):
        # Duplicates are those of the batch before.
        last = keys + number * new
        write_file(
            spark, folder / "rows" / f"{number:05}.parquet", (last - rows, last) if number else (0, keys)
        )
        if view == JOIN:
            write_file(spark, folder / "clicks" / f"{number:05}.parquet", (0, rows))


def write_file(spark: SparkSession, file: Path, ids: tuple[int, int]) -> None:
    """Write one file of the rows with these ids."""
    rows = spark.range(*ids, numPartitions=1)
    place = file.with_suffix(".tmp")
    rows.selectExpr("concat('user-', id) AS user_id", "timestamp_seconds(1767225600) AS at").write.parquet(
        str(place)
    )
    (part,) = place.glob("part-*.parquet")
    part.rename(file)
    shutil.rmtree(place)


def source(folder: Path) -> dict[str, Any]:
    """A source that gives one file of a folder to each batch."""
    return {
        "parquet": {"path": str(folder), "max_files_per_trigger": 1},
        "schema": COLUMNS,
        "watermark": {"event_time": "at", "delay_threshold": f"{DAYS} days"},
    }


def spec(view: str, folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """The pipeline of one run."""
    sources = {"users": source(folder / "rows")}
    views: dict[str, Any] = {"result": "SELECT * FROM users"}
    if view == DUPLICATES:
        sources["users"]["drop_duplicates_within_watermark"] = ["user_id"]
    elif view == TOTALS:
        del sources["users"]["watermark"]
        views["result"] = "SELECT user_id, count(*) AS rows, max(at) AS newest FROM users GROUP BY user_id"
    elif view == PROCESSOR:
        views["result"] = {
            "transform_with_state": FirstRows,
            "from": "users",
            "group_by": ["user_id"],
            "rows": "row",
            "schema": COLUMNS,
            "state": {"seen": {"value": {"at": "timestamp"}}},
            "time_mode": "event_time",
        }
    else:
        sources["clicks"] = source(folder / "clicks")
        views[
            "result"
        ] = """SELECT users.user_id, clicks.at FROM users JOIN clicks ON users.user_id = clicks.user_id
            AND clicks.at BETWEEN users.at AND users.at + INTERVAL 1 DAY"""
    queries: dict[str, Any] = {"result": {"to": {"parquet": str(folder / "out")}}}
    if view == TOTALS:
        (folder / "store.py").write_text(SINK)
        options = {"path": str(folder / "out")}
        queries["result"] = {
            "to": {"foreach_batch": {"function": "store:store", "options": options}},
            "output_mode": "update",
        }
    return {
        "name": "state-size", "spark": settings, "sources": sources, "views": views, "queries": queries,
        "folder": folder,
    }  # fmt: skip


def run_once(
    spark: SparkSession, folder: Path, view: str, keys: int, batches: int, rows: int, settings: dict[str, Any]
) -> list[float]:
    """Seconds of each small batch that counts."""
    write_files(spark, folder, view, keys, batches, rows)
    seconds: dict[int, float] = {}
    events = EventBus()

    def note(event: Event) -> None:
        if event.event == "batch_committed":
            seconds[event.data["batch"]] = event.data["duration_ms"]["triggerExecution"] / 1000

    events.listen(note)
    pipeline = Pipeline.model_validate(spec(view, folder, settings), context={"folder": folder})
    result = run_pipeline(spark, pipeline, RunOptions(until_caught_up=True), events, {})
    events.close()
    actual = spark.read.parquet(str(folder / "out")).count()
    expected = {JOIN: (batches + 1) * rows, TOTALS: keys + batches * rows}.get(
        view, keys + batches * (rows // 2)
    )
    if not result or actual != expected:
        raise SystemExit(f"{actual} rows came of {expected}")
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
    parser.add_argument("--rows", type=int, default=ROWS, help="Rows of a batch.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rocksdb", action="store_true", help="Keep the state in RocksDB.")
    parser.add_argument("--view", choices=(DUPLICATES, TOTALS, PROCESSOR, JOIN), default=DUPLICATES)
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="Settings of Spark.")
    asked = parser.parse_args()
    settings: dict[str, Any] = {STORE: ROCKSDB} if asked.rocksdb or asked.view == PROCESSOR else {}
    settings |= dict(setting.split("=", 1) for setting in asked.set)
    found: dict[int, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="millstream-state-") as scratch:
        spark = open_session("bench", {"spark.master": "local[2]", **settings}, Path(scratch) / "spark.log")
        for turn in range(asked.rounds):
            for keys in asked.keys:
                times = run_once(
                    spark,
                    Path(scratch) / f"{turn}-{keys}",
                    asked.view,
                    keys,
                    asked.batches,
                    asked.rows,
                    settings,
                )
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
