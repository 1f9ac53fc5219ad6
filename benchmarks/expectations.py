"""What expectations cost: one batch of a million rows held to two of them, beside the same query with a filter.

    python benchmarks/expectations.py --rows 1000000 --rounds 5

Each run reads the same Parquet files in one batch and writes Parquet; one row in a thousand breaks an expectation.
Ways are interleaved. Seconds are those of the batch as Spark reports it; CPU is user and system time of this process,
the JVM and its workers, over the whole run.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure import cpu_seconds

from millstream.engine.events.event_bus import Event, EventBus
from millstream.engine.run import RunOptions, run_pipeline
from millstream.pipeline.model import Pipeline
from millstream.spark.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLAIN = "a filter in the view"
RULES = {"paid": "amount > 0", "named": "length(user_id) > 4"}
WHERE = " AND ".join(RULES.values())
COLUMNS = {"id": "bigint", "user_id": "string", "amount": "double", "at": "timestamp"}


@dataclass
class Way:
    """One spec: the view's SQL, and what becomes of a row that breaks an expectation; None for no expectations."""

    name: str
    sql: str
    otherwise: str | None
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def spec(self, folder: Path, rows: Path) -> dict[str, Any]:
        """A pipeline of its own folder over the rows."""
        expect = {name: {"that": that, "otherwise": self.otherwise} for name, that in RULES.items()}
        return {
            "name": "bench",
            "sources": {
                "orders": {
                    "parquet": str(rows),
                    "schema": COLUMNS,
                    **({"expect": expect} if self.otherwise else {}),
                }
            },
            "views": {"good": self.sql},
            "queries": {"good": {"to": {"parquet": str(folder / "out")}}},
            "folder": folder,
        }


def ways() -> list[Way]:
    """A filter by hand, and each consequence of an expectation."""
    everything = "SELECT * FROM orders"
    result = [Way(PLAIN, f"{everything} WHERE {WHERE}", None), Way("no rule at all", everything, None)]
    return result + [Way(f"expect, {item}", everything, item) for item in ("warn", "drop", "dead_letter")]


def run_once(spark: SparkSession, way: Way, folder: Path, rows: Path) -> None:
    """One run until caught up, in a fresh folder."""
    folder.mkdir()
    messages: list[Event] = []
    events = EventBus()
    events.listen(messages.append)
    pipeline = Pipeline.model_validate(way.spec(folder, rows), context={"folder": folder})
    cpu = cpu_seconds()
    result = run_pipeline(spark, pipeline, RunOptions(until_caught_up=True), events, {})
    events.close()
    if not result:
        raise SystemExit("\n".join(item.to_json() for item in messages if item.event == "query_failed"))
    way.cpu.append(cpu_seconds() - cpu)
    batches = [
        item.data["duration_ms"]["triggerExecution"] for item in messages if item.event == "batch_committed"
    ]
    way.seconds.append(max(batches) / 1000)


def print_table(found: list[Way], rows: int) -> None:
    """The table: medians, and each round's ratio to the filter."""
    plain = found[0].seconds
    print(f"{'':24} {'rows/s':>10} {'batch s':>8} {'CPU s':>7}  times the filter's seconds, least .. most")
    for way in found:
        ratios = sorted(us / them for us, them in zip(way.seconds, plain, strict=True))
        seconds = statistics.median(way.seconds)
        print(
            f"{way.name:24} {rows / seconds:10,.0f} {seconds:8.2f} {statistics.median(way.cpu):7.2f}"
            f"  {statistics.median(ratios):.2f} ({ratios[0]:.2f} .. {ratios[-1]:.2f})"
        )


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = open_session("bench", {"spark.master": "local[2]"}, folder / "spark.log")
        result = spark.range(0, chosen.rows, numPartitions=4).selectExpr(
            "id",
            "concat('user-', id % 10000) AS user_id",
            "IF(id % 1000 = 0, -1, CAST(id AS DOUBLE) / 7) AS amount",
            "timestamp_seconds(1767225600 + id) AS at",
        )
        result.write.parquet(str(folder / "rows"))
        actual = ways()
        for number in range(chosen.rounds + 1):
            for at, way in enumerate(actual):
                run_once(spark, way, folder / f"run-{number}-{at}", folder / "rows")
            if not number:
                # The first round warms the JVM.
                for way in actual:
                    way.seconds.clear()
                    way.cpu.clear()
            print(f"round {number} of {chosen.rounds}", file=sys.stderr)
        print_table(actual, chosen.rows)
        spark.stop()


if __name__ == "__main__":
    main()
