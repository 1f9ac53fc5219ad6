"""What a guarantee costs: each writer beside the plain way to the same place, interleaved in one run.

    python benchmarks/sinks.py --rows 500000 --rounds 5 [--only kafka]

Kafka: the transactional writer beside Spark's own sink. Postgres: append beside `psql \\copy` of the same lines
from a file, upsert beside `executemany`: of a batch whose keys are all there already, and of batches of which nine
rows in ten and one in ten are; the sink makes its own table, with room for new versions of rows. The rows are cached
in Spark before anything is measured. CPU is user and system time of this process, the JVM and its workers; servers
are not counted.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.kafka.sink import KafkaSink
from millstream.connectors.postgres.sink import PostgresSink
from millstream.devstack import stack
from millstream.devstack.servers import postgres as server
from millstream.spark.session import open_session
from millstream.spec.output_mode import OutputMode

sys.path.insert(0, str(Path(__file__).parent))
from measure import cpu_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.api.sink import Sink

COLUMNS = (
    "event_id text, user_id text, product_id text, amount double precision, n bigint, event_time timestamptz"
)
ROW = (
    "concat('event-', id) AS event_id",
    "concat('user-', id % 10000) AS user_id",
    "concat('product-', id % 500) AS product_id",
    "CAST(id AS DOUBLE) / 7 AS amount",
    "id AS n",
    "timestamp_seconds(1767225600 + id) AS event_time",
)


@dataclass
class Case:
    """One way to write; `run_once` writes the rows and gives nothing."""

    name: str
    against: str
    run_once: Callable[[], None]
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


def writer(sink: Sink, mode: str, *frames: DataFrame) -> Callable[[], None]:
    """Writes the frames by one of our writers, in turn, as batch after batch of one query."""
    result = sink.writer(
        SinkIdentity("bench", "rows", uuid.uuid4().hex, f"{sink.kind}:rows", OutputMode(mode))
    )
    result.open(frames[0].sparkSession, frames[0].schema)
    batches = enumerate(itertools.cycle(frames))

    def run_once() -> None:
        number, frame = next(batches)
        result.write(frame, number)

    return run_once


def kafka(frame: DataFrame, address: str) -> list[Case]:
    """Spark's own producer, and ours with transactions."""
    names = [f"bench-{uuid.uuid4().hex[:8]}" for _ in range(2)]
    admin = AdminClient({"bootstrap.servers": address})
    for topic in admin.create_topics([NewTopic(name, 4, 1) for name in names]).values():
        topic.result(10)
    plain, sure = (
        KafkaSink.model_validate(
            {"bootstrap_servers": address, "topic": name, "key": "user_id", "transactional": sure}
        )
        for name, sure in zip(names, (False, True), strict=True)
    )
    return [
        Case("kafka, Spark's own producer", "", writer(plain, "append", frame)),
        Case("kafka, transactional", "kafka, Spark's own producer", writer(sure, "append", frame)),
    ]


def rows_from(spark: SparkSession, first: int, rows: int) -> DataFrame:
    """So many rows with numbers from `first` on, cached."""
    frame = spark.range(first, first + rows, numPartitions=2).selectExpr(*ROW).persist()
    frame.count()
    return frame


def postgres(frame: DataFrame, url: str, folder: Path) -> list[Case]:
    """Append, beside a copy of the same lines from a file."""
    file = folder / "rows.csv"
    (frame.coalesce(1).write.mode("overwrite").option("header", "false").csv(str(folder / "csv")))
    next((folder / "csv").glob("part-*.csv")).rename(file)
    with psycopg.connect(url, autocommit=True) as connection:
        for name in ("copied", "appended"):
            connection.execute(f"CREATE TABLE {name} ({COLUMNS})")
    psql = str(server.find_binaries() / "psql")

    def copy() -> None:
        command = f"\\copy copied FROM '{file}' WITH (FORMAT csv)"
        subprocess.run([psql, url, "-qc", command], check=True)

    append = PostgresSink.model_validate({"url": url, "table": "appended"})
    return [
        Case("postgres, psql \\copy", "", copy),
        Case("postgres, append", "postgres, psql \\copy", writer(append, "append", frame)),
    ]


def upserts(url: str, what: str, frames: Sequence[DataFrame]) -> list[Case]:
    """Batch after batch into a table with a key, beside what a person would write by hand."""
    actual, reference = (f"{name}_{uuid.uuid4().hex[:6]}" for name in ("upserted", "one_by_one"))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {reference} ({COLUMNS}, PRIMARY KEY (event_id))")
    turns = itertools.cycle(frames)

    def by_hand() -> None:
        frame = next(turns)
        names = frame.columns
        places = ", ".join(["%s"] * len(names))
        sets = ", ".join(f"{name} = excluded.{name}" for name in names[1:])
        with psycopg.connect(url) as connection, connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {reference} VALUES ({places}) ON CONFLICT (event_id) DO UPDATE SET {sets}",
                [tuple(row) for row in frame.collect()],
            )

    sink = PostgresSink.model_validate({"url": url, "table": actual, "merge_on": ["event_id"]})
    return [
        Case(f"executemany, {what}", "", by_hand),
        Case(f"upsert, {what}", f"executemany, {what}", writer(sink, "update", *frames)),
    ]


def measure(case: Case) -> None:
    """One write of all rows."""
    cpu, began = cpu_seconds(), time.monotonic()
    case.run_once()
    case.seconds.append(time.monotonic() - began)
    case.cpu.append(cpu_seconds() - cpu)


def print_table(cases: list[Case], rows: int) -> None:
    """The table: medians, and each round's ratio to the way it stands beside."""
    by_name = {case.name: case for case in cases}
    print(f"{'':32} {'rows/s':>10} {'CPU s':>7}  {'times as fast as':32} least .. most")
    for case in cases:
        line = f"{case.name:32} {rows / statistics.median(case.seconds):10,.0f} {statistics.median(case.cpu):7.2f}"
        if case.against:
            other = by_name[case.against].seconds
            ratios = sorted(them / us for us, them in zip(case.seconds, other, strict=True))
            line += (
                f"  {case.against:32} {statistics.median(ratios):.2f} ({ratios[0]:.2f} .. {ratios[-1]:.2f})"
            )
        print(line)


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=("kafka", "postgres"))
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        there = stack.up(folder, attached=True)
        try:
            spark = open_session("bench", {"spark.master": "local[2]"}, folder / "spark.log")
            frame = rows_from(spark, 0, chosen.rows)
            cases = []
            if chosen.only != "postgres":
                cases += kafka(frame, there.kafka)
            if chosen.only != "kafka":
                cases += postgres(frame, there.postgres, folder)
                cases += upserts(there.postgres, "all there", [frame])
                for tenths in (9, 1):
                    new = chosen.rows * (10 - tenths) // 10
                    frames = [rows_from(spark, turn * new, chosen.rows) for turn in range(chosen.rounds + 1)]
                    cases += upserts(there.postgres, f"{tenths} in 10 there", frames)
            for number in range(chosen.rounds + 1):
                for case in cases:
                    measure(case)
                if not number:
                    # The first round warms the JVM and makes the tables.
                    for case in cases:
                        case.seconds.clear()
                        case.cpu.clear()
                print(f"round {number} of {chosen.rounds}", file=sys.stderr)
            print_table(cases, chosen.rows)
            spark.stop()
        finally:
            stack.down(folder)


if __name__ == "__main__":
    main()
