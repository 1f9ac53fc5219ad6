"""One batch of 2,000,000 rows into each sink, on a cluster of two workers, with a small heap of the driver.

    python benchmarks/large_batch.py --rows 2000000 --heap 512m

What a batch's rows pass through may not be the driver: a heap of 512 MB would not hold them. The rows have three
columns and lie in Parquet files, all of which one batch reads. Each sink is a run of its own, on the local stack's
cluster (`millstream up --workers 2`, of one core and 1 GiB each). Afterwards the rows of the sink are counted, in
Kafka those of committed transactions. The seconds are those of the whole run, with its start.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

import psycopg
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import yaml
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from deltalake import DeltaTable
from measure import measure
from scratch import scratch_folder

from millstream.devstack import stack
from millstream.devstack.servers.spark_cluster import ClusterSize
from millstream.spark import resources

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.devstack.supervisor.state import Endpoints

FILES = 8
SINKS = ("postgres", "parquet", "delta", "kafka", "kafka_in_transactions")


def write_input(folder: Path, rows: int) -> None:
    """Write files with so many rows in all."""
    folder.mkdir()
    for number, start in enumerate(range(0, rows, size := -(-rows // FILES))):
        ids = range(start, min(start + size, rows))
        columns = {
            "id": pa.array(ids, pa.int64()),
            "name": [f"customer number {i}" for i in ids],
            "amount": pa.array((i / 7 for i in ids), pa.float64()),
        }
        pq.write_table(pa.table(columns), folder / f"{number}.parquet")


def write_spec(folder: Path, endpoints: Endpoints, heap: str) -> None:
    """Write a spec with a query for each sink."""
    kafka = {"bootstrap_servers": endpoints.kafka}
    sinks = {
        "postgres": {"postgres": {"table": "large", "url": endpoints.postgres}},
        "parquet": {"parquet": {"path": "lake/files"}},
        "delta": {"delta": {"path": "lake/table"}},
        "kafka": {"kafka": {**kafka, "topic": "kafka"}},
        "kafka_in_transactions": {
            "kafka": {**kafka, "topic": "kafka_in_transactions"},
            "guarantee": "exactly-once",
        },
    }
    spec = {
        "name": "large",
        "spark": {
            **stack.cluster_settings(endpoints.folder, endpoints.spark),
            "spark.master": endpoints.spark,
            "spark.driver.memory": heap,
        },
        "sources": {
            "rows": {
                "parquet": {"path": "in"},
                "schema": {"id": "bigint", "name": "string", "amount": "double"},
            }
        },
        "queries": {name: {"from": "rows", "to": sinks[name]} for name in SINKS},
    }
    (folder / "pipeline.yml").write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")


def count_committed(kafka: str, topic: str) -> int:
    """Return the number of records in a topic that a reader of committed ones gets."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.subscribe([topic])
    count, is_at_end = 0, False
    while not is_at_end:
        for message in consumer.consume(10_000, timeout=1):
            if message.error():
                is_at_end = True
            else:
                count += 1
    consumer.close()
    return count


def count_rows(folder: Path, endpoints: Endpoints, sink: str) -> int:
    """Return the number of rows in a sink."""
    if sink == "postgres":
        with psycopg.connect(endpoints.postgres) as connection:
            return int(connection.execute("SELECT count(*) FROM large").fetchall()[0][0])
    if sink == "parquet":
        return int(ds.dataset(str(folder / "lake" / "files"), format="parquet").count_rows())
    if sink == "delta":
        return int(DeltaTable(str(folder / "lake" / "table")).to_pyarrow_dataset().count_rows())
    return count_committed(endpoints.kafka, sink)


def main() -> None:
    """Run each sink, and print a line of the table for it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--heap", default="512m", help="spark.driver.memory")
    parser.add_argument("--only", nargs="+", choices=SINKS, default=SINKS)
    asked = parser.parse_args()
    with scratch_folder("large-batch") as folder:
        endpoints = stack.up(folder, cluster=ClusterSize(workers=2, cores=1, memory=1024))
        topics = [NewTopic(name, 1) for name in SINKS if name.startswith("kafka")]
        # The futures end with an error if no variable holds their client.
        admin = AdminClient({"bootstrap.servers": endpoints.kafka})
        for created in admin.create_topics(topics).values():
            created.result()
        write_input(folder / "in", asked.rows)
        write_spec(folder, endpoints, asked.heap)
        print(f"{resources.available_cores()} cores, load average {os.getloadavg()[0]:.1f} before\n")
        print(
            "| sink | rows | rows in the sink | batches | seconds |\n| --- | --- | --- | --- | --- |",
            flush=True,
        )
        for sink in asked.only:
            log = folder / f"{sink}.log"
            words = ["run", "--until-caught-up", "--no-page", "--select", sink]
            cost = measure([sys.executable, "-m", "millstream", *words], log, cwd=folder)
            if cost.code:
                sys.exit(log.read_text(encoding="utf-8"))
            batches = sum(1 for _ in folder.rglob(f"checkpoints/{sink}/commits/[0-9]*"))
            cells = (
                sink,
                f"{asked.rows:,}",
                f"{count_rows(folder, endpoints, sink):,}",
                batches,
                f"{cost.wall:.0f}",
            )
            print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
