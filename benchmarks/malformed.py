"""What malformed records cost: a topic in which one record in a hundred is malformed, beside one in which none is.

    python benchmarks/malformed.py --rows 200000 --rounds 5 [--batch 1000]

Both topics are read from their start to their end in batches of `--batch` records, into Parquet; malformed records go
to the dead-letter table, and a run in which one is missing has no figure. CPU is user and system time of this process
and the JVM, over the whole run.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer
from measure import cpu_seconds

from millstream.devstack import stack
from millstream.devstack.servers.topics import create_topics
from millstream.engine.events.event_bus import Event, EventBus
from millstream.engine.run import RunOptions, run_pipeline
from millstream.pipeline.model import Pipeline
from millstream.spark.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHARE = 100
"""One record in so many is malformed."""
CLEAN, MALFORMED = "orders", "orders-malformed"


def fill(brokers: str, rows: int) -> None:
    """Make both topics, of records of the same sizes."""
    create_topics(brokers, {CLEAN: {}, MALFORMED: {}})
    producer = Producer({"bootstrap.servers": brokers, "queue.buffering.max.messages": 2 * rows + 1})
    for number in range(rows):
        record = f'{{"id": {number}, "user": "u{number % 5000:06}", "amount": {number / 100}}}'
        producer.produce(CLEAN, record, partition=number % 4)
        producer.produce(MALFORMED, record if number % SHARE else record[:-1] + "]", partition=number % 4)
    producer.flush()


def spec(brokers: str, topic: str, batch: int, folder: Path) -> dict[str, Any]:
    """The pipeline of one run."""
    return {
        "name": "malformed",
        "sources": {
            "orders": {
                "kafka": {
                    "bootstrap_servers": brokers,
                    "subscribe": topic,
                    "starting_offsets": "earliest",
                    "max_offsets_per_trigger": batch,
                },
                "format": "json",
                "schema": {"id": "bigint", "user": "string", "amount": "double"},
                "on_malformed": "dead_letter",
            }
        },
        "queries": {"orders": {"to": {"parquet": str(folder / "out")}}},
        "folder": folder,
    }


def run_once(spark: SparkSession, brokers: str, topic: str, batch: int, rows: int, folder: Path) -> float:
    """CPU seconds of one run until caught up."""
    folder.mkdir()
    committed: list[Event] = []
    events = EventBus()
    events.listen(lambda event: committed.append(event) if event.event == "batch_committed" else None)
    pipeline = Pipeline.model_validate(spec(brokers, topic, batch, folder), context={"folder": folder})
    before = cpu_seconds()
    result = run_pipeline(spark, pipeline, RunOptions(until_caught_up=True), events, {})
    used = cpu_seconds() - before
    events.close()
    bad = sum(event.data["malformed"] for event in committed)
    if not result or bad != (rows // SHARE if topic == MALFORMED else 0):
        raise SystemExit(f"{topic}: the run gave {bad} malformed records")
    return used


def main() -> None:
    """Fill, measure in turn, report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, nargs="+", default=[1_000, 200_000])
    parser.add_argument(
        "--warm", type=int, default=1, help="Rounds before the counted ones: the JVM compiles."
    )
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="millstream-malformed-") as scratch:
        folder = Path(scratch)
        brokers = stack.up(folder, attached=True).kafka
        try:
            spark = open_session("bench", {"spark.master": "local[2]"}, folder / "spark.log")
            fill(brokers, asked.rows)
            for batch in asked.batch:
                used: dict[str, list[float]] = {CLEAN: [], MALFORMED: []}
                for turn in range(-asked.warm, asked.rounds):
                    for topic in (CLEAN, MALFORMED) if turn % 2 else (MALFORMED, CLEAN):
                        place = folder / f"{batch}-{turn}-{topic}"
                        seconds = run_once(spark, brokers, topic, batch, asked.rows, place)
                        if turn >= 0:
                            used[topic].append(seconds)
                ratios = [bad / good for bad, good in zip(used[MALFORMED], used[CLEAN], strict=True)]
                print(
                    f"batches of {batch:>7,}: {statistics.median(used[CLEAN]):.2f} CPU s with no malformed record, "
                    f"{statistics.median(used[MALFORMED]):.2f} with 1 %; {statistics.median(ratios):.2f} times "
                    f"({min(ratios):.2f} to {max(ratios):.2f}, {asked.rounds} rounds)",
                    flush=True,
                )
            spark.stop()
        finally:
            stack.down(folder)


if __name__ == "__main__":
    main()
