"""What queries cost while no record arrives: the share of a core that they take, beside the same queries by hand.

    python benchmarks/idle.py [--queries 20] [--seconds 60] [--rounds 3]

Each query reads a topic of its own, of a few records, into Parquet with a checkpoint. Once all of them have caught
up, CPU seconds of the program and its JVM are counted for `--seconds`. The run is `millstream run` with its page; by
hand is plain PySpark. Queries have a trigger without an interval, unless `--trigger` gives one.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer
from measure import tree_cpu_seconds

from millstream.devstack import stack
from millstream.devstack.servers.topics import create_topics
from millstream.spark.jars import jar_cache

OURS, BY_HAND = "millstream", "by hand"
COMMAND = str(Path(sys.executable).parent / "millstream")
PATIENCE = 300.0
RECORDS = 100
SCHEMA = {"id": "bigint"}

# Argument 1: the program's settings, as JSON.
PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
given = json.loads(sys.argv[1])
spark = (SparkSession.builder.master("local[2]").config("spark.jars", given["jars"])
    .config("spark.sql.shuffle.partitions", 2).config("spark.ui.showConsoleProgress", False).getOrCreate())
for number in range(given["queries"]):
    rows = (spark.readStream.format("kafka").option("kafka.bootstrap.servers", given["kafka"])
        .option("subscribe", f"idle-{number}").option("startingOffsets", "earliest").load()
        .selectExpr("from_json(string(value), 'id BIGINT').id AS id"))
    writer = rows.writeStream.format("parquet").option("path", f"{given['folder']}/out-{number}")
    writer = writer.option("checkpointLocation", f"{given['folder']}/checkpoints/query_{number}")
    if given["trigger"]:
        writer = writer.trigger(processingTime=given["trigger"])
    writer.start()
spark.streams.awaitAnyTermination()
"""


def fill(brokers: str, queries: int) -> None:
    """Make a topic of some records for each query."""
    create_topics(brokers, {f"idle-{number}": {} for number in range(queries)})
    producer = Producer({"bootstrap.servers": brokers})
    for number in range(queries * RECORDS):
        producer.produce(f"idle-{number % queries}", json.dumps({"id": number}))
    producer.flush()


def command(name: str, folder: Path, brokers: str, asked: argparse.Namespace) -> list[str]:
    """How a program is started."""
    if name == BY_HAND:
        jars = ",".join(str(path) for path in jar_cache.ensure_jars("spark"))
        settings = {
            "jars": jars, "kafka": brokers, "folder": str(folder), "queries": asked.queries, "trigger": asked.trigger,
        }  # fmt: skip
        return [sys.executable, "-c", PROGRAM, json.dumps(settings)]
    sources = {
        f"topic_{number}": {
            "kafka": {
                "bootstrap_servers": brokers, "subscribe": f"idle-{number}", "starting_offsets": "earliest",
            },
            "format": "json",
            "schema": SCHEMA,
        }
        for number in range(asked.queries)
    }  # fmt: skip
    queries = {
        f"query_{number}": {"from": f"topic_{number}", "to": {"parquet": str(folder / f"out-{number}")}}
        for number in range(asked.queries)
    }
    defaults = {
        "checkpoints": str(folder / "checkpoints"),
        **({"trigger": asked.trigger} if asked.trigger else {}),
    }
    spec = {"name": "idle", "defaults": defaults, "sources": sources, "queries": queries}
    (folder / "pipeline.yml").write_text(json.dumps(spec))
    return [COMMAND, "run", "--json", "-f", str(folder)]


def measure(name: str, folder: Path, brokers: str, asked: argparse.Namespace) -> float:
    """The share of a core that the program takes once each of its queries has committed a batch."""
    folder.mkdir()
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen(command(name, folder, brokers, asked), stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + PATIENCE
            while len({path.parts[-3] for path in folder.glob("checkpoints/**/commits/0")}) < asked.queries:
                if running.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit((folder / "log").read_text(errors="replace")[-3000:])
                # Nothing tells that another process has written a file: it is looked for again.
                time.sleep(1)
            # The JVM still compiles what the first batches ran, and nothing tells when it is done.
            time.sleep(asked.warm)
            before = tree_cpu_seconds(running.pid)
            # What is measured is what the queries take while nothing comes.
            time.sleep(asked.seconds)
            return (tree_cpu_seconds(running.pid) - before) / asked.seconds
        finally:
            running.terminate()
            running.wait(PATIENCE)


def main() -> None:
    """Measure in turn, report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--trigger", default="", help="An interval, such as `1 second`; none unless given.")
    parser.add_argument("--warm", type=float, default=30.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    shares: dict[str, list[float]] = {OURS: [], BY_HAND: []}
    with tempfile.TemporaryDirectory(prefix="millstream-idle-") as scratch:
        folder = Path(scratch)
        brokers = stack.up(folder, attached=True).kafka
        try:
            fill(brokers, asked.queries)
            for turn in range(asked.rounds):
                for name in (OURS, BY_HAND) if turn % 2 == 0 else (BY_HAND, OURS):
                    share = measure(name, folder / f"{turn}-{name.replace(' ', '-')}", brokers, asked)
                    shares[name].append(share)
                    print(f"round {turn + 1} {name}: {share:.1%} of a core", flush=True)
        finally:
            stack.down(folder)
    for name, values in shares.items():
        print(
            f"{asked.queries} idle queries, {name}: {statistics.median(values):.1%} of a core "
            f"({min(values):.1%} to {max(values):.1%}, {asked.rounds} rounds)"
        )


if __name__ == "__main__":
    main()
