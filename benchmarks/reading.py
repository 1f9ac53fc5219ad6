"""What it takes to read a topic: our Kafka source beside the same stream in plain PySpark, interleaved in one run.

    python benchmarks/reading.py --rounds 10 [--rows 1000000] [--partitions 4]

Two topics: one of 1,000 records, as a batch at the head of a topic is, and one of `--rows`. Each round reads both to
their ends, once by each reader, into Spark's `noop` sink; every start reads all of a topic in one batch. The figure
is the time of Spark's `addBatch`: planning and the start of a query are in neither.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from millstream.connectors.kafka.source import KafkaSource
from millstream.devstack import stack
from millstream.spark.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FEW = 1000
OURS, PLAIN = "millstream", "plain"


def fill(brokers: str, topic: str, rows: int, partitions: int) -> None:
    """Make a topic of that many orders."""
    admin = AdminClient({"bootstrap.servers": brokers})
    for result in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        result.result()
    producer = Producer({"bootstrap.servers": brokers, "queue.buffering.max.messages": rows + 1})
    for number in range(rows):
        order = {"id": number, "user": f"u{number % 5000:06}", "amount": number / 100}
        producer.produce(topic, json.dumps(order), partition=number % partitions)
    producer.flush()


def read(spark: SparkSession, reader: str, brokers: str, topic: str) -> DataFrame:
    """The topic as a stream, from its oldest record on."""
    if reader == OURS:
        source = KafkaSource.model_validate({"bootstrap_servers": brokers, "subscribe": topic})
        return source.read(spark, static=False, schema=None)
    options = {"kafka.bootstrap.servers": brokers, "subscribe": topic, "startingOffsets": "earliest"}
    return spark.readStream.format("kafka").options(**options).load()


def batch(frame: DataFrame, checkpoint: Path, rows: int) -> float:
    """Read it to its end in one batch; gives the milliseconds of `addBatch`."""
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    (item,) = [messages for messages in query.recentProgress if messages["numInputRows"]]
    if item["numInputRows"] != rows:
        raise SystemExit(f"{item['numInputRows']} records came of {rows}")
    return float(item["durationMs"]["addBatch"])


def main() -> None:
    """Fill, measure in turn, report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=4)
    args = parser.parse_args()
    seconds: dict[tuple[int, str], list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="millstream-reading-") as scratch:
        folder = Path(scratch)
        there = stack.up(folder, attached=True)
        try:
            spark = open_session("bench", {"spark.master": "local[2]"}, folder / "spark.log")
            for rows in (FEW, args.rows):
                fill(there.kafka, f"orders-{rows}", rows, args.partitions)
            # The first round is not counted: the JVM compiles.
            for turn in range(-1, args.rounds):
                for rows in (FEW, args.rows):
                    for reader in (OURS, PLAIN) if turn % 2 else (PLAIN, OURS):
                        frame = read(spark, reader, there.kafka, f"orders-{rows}")
                        ms = batch(frame, folder / f"{turn}-{rows}-{reader}", rows)
                        if turn >= 0:
                            seconds.setdefault((rows, reader), []).append(ms)
            spark.stop()
        finally:
            stack.down(folder)
    for rows in (FEW, args.rows):
        pairs = zip(seconds[rows, PLAIN], seconds[rows, OURS], strict=True)
        ratios = [plain / actual for plain, actual in pairs]
        middle = {reader: statistics.median(seconds[rows, reader]) for reader in (OURS, PLAIN)}
        print(
            f"{rows:>9,} records in {args.partitions} partitions: millstream {middle[OURS]:,.0f} ms, plain PySpark "
            f"{middle[PLAIN]:,.0f} ms; {statistics.median(ratios):.1f} times as fast "
            f"({min(ratios):.1f} to {max(ratios):.1f}, {args.rounds} rounds)"
        )


if __name__ == "__main__":
    sys.exit(main())
