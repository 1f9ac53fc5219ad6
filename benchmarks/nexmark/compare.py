"""Run the 23 queries of Nexmark through Millstream, and compare their rows with DuckDB over the same events.

    python benchmarks/nexmark/compare.py --events 50000

Sends the generated events to a topic of the local Kafka broker, runs pipeline.yml until it is caught up, and
computes expected.sql over the same events. Exits with 1 if a query has other rows.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Producer
from deltalake import DeltaTable, QueryBuilder

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from events import Event, Generator, side_input, tables  # noqa: E402 - found by the line above
from measure import measure  # noqa: E402
from scratch import scratch_folder  # noqa: E402

from millstream.devstack import stack  # noqa: E402
from millstream.devstack.servers.topics import create_topics  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Sequence

TOPIC, PARTITIONS = "nexmark", 2
QUERIES = tuple(f"q{number}" for number in range(23))
FOLLOWERS = ("q4", "q6")
"""Queries that read the table of another query, so that they are caught up only after it."""
PROCESSING_TIME = "q12"
"""The query whose windows are those of the machine's clock."""


@dataclass(frozen=True)
class Result:
    """The rows of one query: how many are right, missing, and not expected."""

    query: str
    right: int
    missing: int
    wrong: int

    @property
    def is_right(self) -> bool:
        """Whether the rows are those of DuckDB. A query for which DuckDB has no rows either shows nothing."""
        return self.right > 0 and not self.missing and not self.wrong


def project(folder: Path) -> Path:
    """A folder with the spec and the table that query 13 looks up."""
    (folder / "data" / "side_input").mkdir(parents=True)
    shutil.copy(HERE / "pipeline.yml", folder)
    pq.write_table(side_input(), folder / "data" / "side_input" / "part.parquet")
    return folder


def send(address: str, events: Sequence[Event]) -> None:
    """Send the events to a new topic: one after another to each partition in turn."""
    create_topics(address, {TOPIC: {"partitions": str(PARTITIONS)}})
    producer = Producer(
        {"bootstrap.servers": address, "linger.ms": 50, "queue.buffering.max.messages": 1_000_000}
    )
    for number, event in enumerate(events):
        producer.produce(TOPIC, event.encode(), partition=number % PARTITIONS)
    if left := producer.flush(120):
        raise SystemExit(f"{left} events did not reach the broker at {address}")


def run(folder: Path, address: str, batch: int, words: Sequence[str]) -> float:
    """Run the pipeline, or part of it, until it is caught up; the seconds it took."""
    env = {
        **os.environ,
        "KAFKA": address,
        "TOPIC": TOPIC,
        "BATCH": str(batch),
        "MILLSTREAM_ARCHIVE": os.environ.get("MILLSTREAM_ARCHIVE", "use"),
    }
    log = folder / "run.log"
    cost = measure(
        [sys.executable, "-m", "millstream", "run", "--until-caught-up", "--json", "--no-page", *words],
        log,
        cwd=folder,
        env=env,
    )
    if cost.code:
        raise SystemExit(f"millstream run ended with {cost.code}:\n{log.read_text(errors='replace')[-6000:]}")
    print(f"millstream run {' '.join(words)}: {cost.wall:.0f} s, {cost.cpu:.0f} CPU s", flush=True)
    return cost.wall


def actual(folder: Path, query: str, connection: duckdb.DuckDBPyConnection) -> None:
    """Make a view `actual` of the rows that a query has written."""
    if query == "q9":
        table = DeltaTable(str(folder / "lake" / query))
        read = QueryBuilder().register("read", table).execute("SELECT * FROM read").read_all()
        connection.register("read", pa.table(read))
        source = "read"
    elif query == "q10":
        files = folder / "lake" / query / "dt=*" / "hm=*" / "*.parquet"
        source = f"read_parquet('{files}', hive_partitioning = true, hive_types_autocast = 0)"
    else:
        connection.execute(f"ATTACH '{folder}/lake/{query}.duckdb' AS {query}_file (READ_ONLY)")
        source = f"{query}_file.{query}"
    connection.execute(f"CREATE OR REPLACE TEMP VIEW actual AS SELECT * FROM {source}")


def compare(folder: Path, query: str, connection: duckdb.DuckDBPyConnection, began: float) -> Result:
    """Compare the rows of a query with those of its view in expected.sql, each as often as it is there."""
    actual(folder, query, connection)
    columns = [name for name, *_ in connection.execute(f"DESCRIBE {query}").fetchall()]
    types = {name: kind for name, kind, *_ in connection.execute("DESCRIBE actual").fetchall()}
    rows = "actual"
    if query == PROCESSING_TIME:
        rows = "(SELECT bidder, sum(bid_count) AS bid_count FROM actual GROUP BY bidder)"
        times = connection.execute(
            "SELECT count(*) FROM actual WHERE epoch(starttime) % 10 != 0 OR epoch(endtime) != epoch(starttime) + 10"
            f" OR epoch(endtime) < {began} OR epoch(starttime) > {time.time()}"
        ).fetchall()
        if times != [(0,)]:
            raise SystemExit(f"{query} has windows that are not ten seconds of this run: {times}")
    elif set(types) != set(columns):
        raise SystemExit(f"{query} has the columns {sorted(types)}, not {sorted(columns)}")
    wanted_types = {name: kind for name, kind, *_ in connection.execute(f"DESCRIBE {query}").fetchall()}
    exact = ", ".join(_exact(name, wanted_types[name]) for name in columns)

    def count(left: str, operator: str, right: str) -> int:
        ((number,),) = connection.execute(
            f"SELECT count(*) FROM (SELECT {exact} FROM {left} {operator} SELECT {exact} FROM {right})"
        ).fetchall()
        return int(number)

    return Result(
        query,
        count(rows, "INTERSECT ALL", query),
        count(query, "EXCEPT ALL", rows),
        count(rows, "EXCEPT ALL", query),
    )


def _exact(name: str, kind: str) -> str:
    """A column as a value that both sides write alike: instants in milliseconds, averages to three digits."""
    if kind.startswith("TIMESTAMP"):
        return f"epoch_ms({name}) AS {name}"
    if kind == "DOUBLE" or kind.startswith("DECIMAL"):
        return f"CAST({name} AS DECIMAL(30, 3)) AS {name}"
    return f"CAST({name} AS {'BIGINT' if 'INT' in kind else kind}) AS {name}"


def expectation(events: Sequence[Event]) -> duckdb.DuckDBPyConnection:
    """A database with the events and a view for each query."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name, table in {**tables(events), "side_input": side_input()}.items():
        connection.register("arrow", table)
        connection.execute(f"CREATE TABLE {name} AS FROM arrow")
    connection.execute((HERE / "expected.sql").read_text())
    return connection


def main() -> None:
    """Generate, run, compare, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=int, default=200, help="Events per second of event time.")
    parser.add_argument("--batch", type=int, default=10_000, help="Most records of a micro-batch.")
    parser.add_argument("--only", nargs="*", choices=QUERIES, default=QUERIES, metavar="QUERY")
    parser.add_argument("--keep", action="store_true", help="Leave the folder for a look.")
    asked = parser.parse_args()
    events = list(Generator(asked.seed, asked.rate).events(asked.events))
    with scratch_folder("nexmark", keep=asked.keep) as folder:
        endpoints = stack.up(folder, servers=("kafka",))
        project(folder / "nexmark")
        send(endpoints.kafka, events)
        began = time.time()
        for group in (
            [query for query in asked.only if query not in FOLLOWERS],
            [query for query in asked.only if query in FOLLOWERS],
        ):
            if group:
                run(
                    folder / "nexmark", endpoints.kafka, asked.batch, [f"--select={query}" for query in group]
                )
        connection = expectation(events)
        results = [compare(folder / "nexmark", query, connection, began) for query in asked.only]
    print("\n| query | rows | right | missing | not expected |\n| --- | --- | --- | --- | --- |")
    for result in results:
        word = "yes" if result.is_right else "no"
        print(f"| {result.query} | {result.right} | {word} | {result.missing} | {result.wrong} |")
    right = sum(result.is_right for result in results)
    print(
        f"\n{right} of {len(results)} queries have the right rows; {asked.events} events, seed {asked.seed}"
    )
    sys.exit(right < len(results))


if __name__ == "__main__":
    main()
