"""What a record takes from topic to topic under a continuous and a real-time trigger, and what an idle query costs.

    python benchmarks/flowing.py [--rounds 2] [--records 40] [--idle 15]

Our Kafka source as it is, beside the same source with what Kafka's client has by default for the two settings that we
change, in turn. Records are sent one by one to two partitions, each once the one before has arrived in the other
topic and a moment has passed; the figure is the time from `produce` to a consumer of that topic. Before, nothing is
sent for a while: CPU seconds of the JVM over that while are the cores that the idle query takes.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from millstream.connectors.kafka.source import KafkaSource
from millstream.devstack import stack
from millstream.spark.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

BY_DEFAULT = {"kafka.fetch.max.wait.ms": "500", "kafka.max.poll.records": "500"}
READERS: dict[str, dict[str, str]] = {"Kafka's defaults": BY_DEFAULT, "millstream": {}}
TRIGGERS = ("continuous", "real_time")
# Between two records, in seconds: no divisor of the half second that a broker may hold a fetch back.
PAUSE = 0.13
# The first records meet code that the JVM has not compiled.
COLD = 5
# So long, in seconds, a record may take before the run is given up.
PATIENCE = 60.0


class Flow:
    """A query from one topic to another, which runs until `end`."""

    def __init__(self, spark: SparkSession, brokers: str, trigger: str, reader: str, folder: Path) -> None:
        self.source, self.target = f"{folder.name}-in", f"{folder.name}-out"
        admin = AdminClient({"bootstrap.servers": brokers})
        for topic in admin.create_topics([NewTopic(self.source, 2, 1), NewTopic(self.target, 1, 1)]).values():
            topic.result()
        spec = {"bootstrap_servers": brokers, "subscribe": self.source, "options": READERS[reader]}
        frame = KafkaSource.model_validate(spec).read(spark, static=False, schema=None).select("value")
        writer = frame.writeStream.format("kafka").option("kafka.bootstrap.servers", brokers)
        writer = writer.option("topic", self.target).option("checkpointLocation", str(folder))
        if trigger == "continuous":
            writer = writer.trigger(continuous="1 second")
        else:
            writer = writer.outputMode("update").trigger(realTime="5 seconds")
        self.query: StreamingQuery = writer.start()
        self.producer = Producer({"bootstrap.servers": brokers, "linger.ms": 0})
        group = {"group.id": self.target, "auto.offset.reset": "earliest"}
        self.consumer = Consumer({"bootstrap.servers": brokers, **group})
        self.consumer.subscribe([self.target])

    def send(self, number: int) -> float:
        """The milliseconds that one record takes."""
        began = time.perf_counter()
        self.producer.produce(self.source, str(number).encode(), partition=number % 2)
        self.producer.flush()
        while time.perf_counter() - began < PATIENCE:
            message = self.consumer.poll(1.0)
            if message is not None and not message.error():
                return (time.perf_counter() - began) * 1000
        raise SystemExit(f"record {number} did not arrive: {self.query.exception() or 'the query runs'}")

    def end(self) -> None:
        """Stop it."""
        self.query.stop()
        self.consumer.close()


def cpu(spark: SparkSession) -> float:
    """CPU seconds of the JVM so far."""
    jvm = spark._jvm.java.lang.ProcessHandle.current().pid()  # noqa: SLF001 - PySpark has no other way to it
    return time.clock_gettime((~jvm << 3) | 2)


def main() -> None:
    """Measure in turn, report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--records", type=int, default=40)
    parser.add_argument("--idle", type=float, default=15.0)
    args = parser.parse_args()
    seconds: dict[tuple[str, str], list[float]] = {}
    cores: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="millstream-flowing-") as scratch:
        folder = Path(scratch)
        there = stack.up(folder, attached=True)
        try:
            # A task that never ends for each partition.
            spark = open_session("bench", {"spark.master": "local[4]"}, folder / "spark.log")
            for turn in range(args.rounds):
                for trigger in TRIGGERS:
                    for at, reader in enumerate(READERS):
                        flow = Flow(spark, there.kafka, trigger, reader, folder / f"{trigger}-{at}-{turn}")
                        for number in range(COLD):
                            flow.send(number)
                        began = cpu(spark)
                        # What is measured is what the query takes while nothing comes.
                        time.sleep(args.idle)
                        cores.setdefault((trigger, reader), []).append((cpu(spark) - began) / args.idle)
                        for number in range(args.records):
                            # Else each record would come right after a poll, and never meet one that waits.
                            time.sleep(PAUSE)
                            seconds.setdefault((trigger, reader), []).append(flow.send(number))
                        flow.end()
            spark.stop()
        finally:
            stack.down(folder)
    for (trigger, reader), ms in seconds.items():
        idle = cores[trigger, reader]
        print(
            f"{trigger}, {reader}: median {statistics.median(ms):.0f} ms ({min(ms):.0f} to {max(ms):.0f}, "
            f"{len(ms)} records); idle {min(idle):.2f} to {max(idle):.2f} cores"
        )


if __name__ == "__main__":
    main()
