"""What the guards of a batch cost: ledger, fence, account and sum; with and without, interleaved.

    python benchmarks/guards.py --rows 100000 --rounds 15 [--only postgres]

Each case writes the same cached rows twice in a round, in changing order: as a query does, and bare: the same way
to the same place without what makes it exact. Bare Postgres copies in a transaction of its own; bare Delta appends
without a transaction's number and asks the log for nothing; bare files are Spark's own append; bare Kafka sends
without a transaction. "delta, beside its own" stands beside Delta's own way to write a batch once (`txnAppId`,
`txnVersion`), which rebuilds the table's state for each commit. The sum alone stands beside the same pass over the
rows without it. CPU is user and system time of this process, the JVM and its workers; servers are not counted. The
last column is the share of a guarded batch that its guards take, as the median over rounds, with the least and the
most.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from psycopg.sql import SQL
from pyspark.sql import functions as F
from sinks import ROW, Case, measure

from millstream.checkpoint.folder import Checkpoint
from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.delta.sink import DeltaSink
from millstream.connectors.files.sink import ParquetSink
from millstream.connectors.kafka.sink import KafkaSink
from millstream.connectors.postgres.sink import PostgresSink
from millstream.devstack import stack
from millstream.engine.delivery.batch_metadata import BatchNotes, rows_metric_columns
from millstream.spark.session import open_session
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from millstream.connectors.api.sink import Sink

# As Spark writes them for a topic of eight partitions.
_ENDS = ",".join(f'"{number}":{number * 100_000}' for number in range(8))
OFFSETS = (
    f'v1\n{{"batchWatermarkMs":0,"batchTimestampMs":1767225600000,"conf":{{}}}}\n{{"events":{{{_ENDS}}}}}\n'
)
BATCHES = 10_000


@dataclass
class Pair:
    """One way to write, guarded and bare."""

    name: str
    guarded: Case
    bare: Case
    shares: list[float] = field(default_factory=list)
    cpu_shares: list[float] = field(default_factory=list)

    def round(self, number: int) -> None:
        """One write of each, the other first in every second round."""
        for case in (self.guarded, self.bare) if number % 2 else (self.bare, self.guarded):
            measure(case)
        self.shares.append(1 - self.bare.seconds[-1] / self.guarded.seconds[-1])
        self.cpu_shares.append(1 - self.bare.cpu[-1] / self.guarded.cpu[-1])

    def forget(self) -> None:
        """Drop what is measured: the first rounds warm the JVM and make the tables."""
        for messages in (
            self.shares,
            self.cpu_shares,
            *(item for c in (self.guarded, self.bare) for item in (c.seconds, c.cpu)),
        ):
            messages.clear()


def guarded(sink: Sink, frame: DataFrame, folder: Path, mode: str = "append") -> Callable[[], None]:
    """Writes the frame by the sink's writer, with the notes of a checkpoint; batch after batch."""
    query_id = uuid.uuid4().hex
    checkpoint = folder / f"checkpoint-{query_id}"
    (checkpoint / "offsets").mkdir(parents=True)
    (checkpoint / "metadata").write_text(f'{{"id":"{query_id}"}}')
    notes = BatchNotes(Checkpoint(checkpoint), query_id)
    writer = sink.writer(SinkIdentity("bench", "rows", query_id, f"{sink.kind}:rows", OutputMode(mode)))
    writer.note = notes
    writer.open(frame.sparkSession, frame.schema)
    batches = iter(range(BATCHES))

    def run_once() -> None:
        batch = next(batches)
        (checkpoint / "offsets" / str(batch)).write_text(OFFSETS)
        writer.write(frame, batch)

    return run_once


def rows(frame: DataFrame) -> list[Pair]:
    """A pass over the rows with the metric that a query has anyway, and with the sum in it."""

    def passing(*, content: bool) -> Callable[[], None]:
        def run_once() -> None:
            figures = rows_metric_columns(frame.schema, content=content)
            frame.observe(f"bench:{uuid.uuid4().hex}", *figures).write.format("noop").mode("overwrite").save()

        return run_once

    return [
        Pair("sum over the rows", Case("", "", passing(content=True)), Case("", "", passing(content=False)))
    ]


def postgres(frame: DataFrame, folder: Path, url: str) -> list[Pair]:
    """Append: the writer, and its own rows copied in a bare transaction."""
    from millstream.connectors.postgres.copy.rows import CopyRows, column_type, encode_columns
    from millstream.connectors.postgres.table import create_table, find_table

    sink = PostgresSink.model_validate({"url": url, "table": "guarded"})
    with psycopg.connect(url, autocommit=True) as connection:
        create_table(connection, "bare", {item.name: column_type(item) for item in frame.schema}, ())
        table = find_table(connection, "bare")
    assert table is not None
    columns = encode_columns(frame.schema, tuple(frame.columns), table.types)
    connection = psycopg.connect(url)

    def run_once() -> None:
        gathered = CopyRows(frame.selectExpr(*(column.sql for column in columns)).toArrow())
        statement = SQL("COPY bare FROM STDIN (FORMAT BINARY)")
        with connection.transaction(), connection.cursor() as cursor, cursor.copy(statement) as copy:
            gathered.send(copy)

    return [Pair("postgres, append", Case("", "", guarded(sink, frame, folder)), Case("", "", run_once))]


def kafka(frame: DataFrame, folder: Path, address: str) -> list[Pair]:
    """The transactional writer, and the same producer without transactions."""
    from confluent_kafka import Producer

    from millstream.connectors.kafka.transactions import TransactionalWriter

    names = [f"bench-{uuid.uuid4().hex[:8]}" for _ in range(2)]
    # Kept in a name: a client that nobody holds ends, and its answers with it.
    admin = AdminClient({"bootstrap.servers": address})
    for result in admin.create_topics([NewTopic(name, 4, 1) for name in names]).values():
        result.result(10)
    settings: dict[str, Any] = {"bootstrap_servers": address, "key": "user_id", "transactional": True}
    sure, plain = (KafkaSink.model_validate({**settings, "topic": name}) for name in names)
    bare = TransactionalWriter(plain, SinkIdentity("bench", "rows", "bare", "kafka:bare", OutputMode.APPEND))
    bare._producer = Producer(  # noqa: SLF001 - the writer's own way of sending, without its transactions
        {**plain.native(), **plain.producing(), "enable.idempotence": True, "partitioner": "murmur2_random",
         "queue.buffering.max.messages": 500_000}
    )  # fmt: skip

    def run_once() -> None:
        for topic, messages in bare._messages(bare.records(frame, 0).toArrow()):  # noqa: SLF001
            bare._send_all(topic, messages)  # noqa: SLF001
        assert bare._producer.flush(60) == 0  # noqa: SLF001

    return [Pair("kafka, transactional", Case("", "", guarded(sure, frame, folder)), Case("", "", run_once))]


def folders(frame: DataFrame, folder: Path) -> list[Pair]:
    """Delta and Parquet, beside Spark's own append of the same format."""
    pairs = []
    for form, kind in (("delta", DeltaSink), ("parquet", ParquetSink)):
        there, bare = folder / f"{form}-guarded", folder / f"{form}-bare"

        def run_once(form: str = form, bare: Path = bare) -> None:
            frame.write.format(form).mode("append").save(str(bare))

        sink = kind.model_validate({"path": str(there)})
        pairs.append(
            Pair(f"{form}, append", Case("", "", guarded(sink, frame, folder)), Case("", "", run_once))
        )

    numbers = iter(range(BATCHES))

    def numbered() -> None:
        options = {"txnAppId": "bench", "txnVersion": str(next(numbers))}
        frame.write.format("delta").mode("append").options(**options).save(str(folder / "delta-numbered"))

    sink = DeltaSink.model_validate({"path": str(folder / "delta-guarded-too")})
    case = Case("", "", guarded(sink, frame, folder))
    return [*pairs, Pair("delta, beside its own", case, Case("", "", numbered))]


def print_table(pairs: list[Pair]) -> None:
    """The table."""
    print(
        f"{'':22} {'guarded s':>10} {'bare s':>8} {'CPU s':>7} {'bare':>6}   {'share of time':24} share of CPU"
    )
    for pair in pairs:
        middle = [
            statistics.median(t)
            for t in (pair.guarded.seconds, pair.bare.seconds, pair.guarded.cpu, pair.bare.cpu)
        ]
        print(
            f"{pair.name:22} {middle[0]:10.3f} {middle[1]:8.3f} {middle[2]:7.2f} {middle[3]:6.2f}   "
            f"{_share(pair.shares):24} {_share(pair.cpu_shares)}"
        )


def _share(shares: list[float]) -> str:
    return f"{statistics.median(shares):6.1%} ({min(shares):.1%} .. {max(shares):.1%})"


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", choices=("sum", "files", "postgres", "kafka"))
    chosen = parser.parse_args()
    served = chosen.only in (None, "postgres", "kafka")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        there = stack.up(folder, attached=True) if served else None
        try:
            spark = open_session("bench", {"spark.master": "local[2]"}, folder / "spark.log")
            frame = spark.range(0, chosen.rows, numPartitions=2).selectExpr(*ROW).persist()
            assert frame.agg(F.count(F.lit(1))).first()[0] == chosen.rows
            pairs: list[Pair] = []
            if chosen.only in (None, "sum"):
                pairs += rows(frame)
            if chosen.only in (None, "files"):
                pairs += folders(frame, folder)
            if there is not None and chosen.only in (None, "postgres"):
                pairs += postgres(frame, folder, there.postgres)
            if there is not None and chosen.only in (None, "kafka"):
                pairs += kafka(frame, folder, there.kafka)
            for number in range(chosen.rounds + 3):
                for pair in pairs:
                    pair.round(number)
                    if number < 3:
                        pair.forget()
                print(f"round {number - 2} of {chosen.rounds}", file=sys.stderr)
            print_table(pairs)
            spark.stop()
        finally:
            if there is not None:
                stack.down(folder)


if __name__ == "__main__":
    main()
