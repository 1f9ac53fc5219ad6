"""A run of many writers that kills itself: `python dying.py CASES LAST LOG`, with CASES as JSON.

Each case is a list: a name, a sink as its kind and its fields, a mode and a point. Its writer writes batches from 0
up to LAST in a thread of its own, and waits in the last one for the end: `before_commit`, with the rows copied and
the transaction open, `after_commit`, before it could tell anybody, or at a failpoint, whose name has a dot in it.
Once all of them wait there, SIGKILL ends the process.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.connectors import failpoints, registry
from millstream.connectors.api.writer import SinkIdentity
from millstream.spark.session import open_session
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.api.sink import Sink
    from millstream.connectors.api.writer import Writer

ROWS = 100


def batch(spark: SparkSession, batch_id: int) -> DataFrame:
    """Rows whose ids belong to this batch alone, so that a lost or doubled batch shows."""
    first = batch_id * ROWS
    return spark.range(first, first + ROWS, numPartitions=2).selectExpr("id", "concat('row ', id) AS text")


def writer_of(sink: Sink, mode: str) -> Writer:
    """The same query and checkpoint at every start."""
    return sink.writer(
        SinkIdentity("shop", "orders", "one-checkpoint", f"{sink.kind}:orders", OutputMode(mode))
    )


class Case(threading.Thread):
    """One writer, up to the point at which it waits for its death."""

    def __init__(self, name: str, settings: tuple[str, dict[str, Any]], mode: str, point: str) -> None:
        super().__init__(name=name, daemon=True)
        self.mode, self.point = mode, point
        kind, fields = settings
        self.sink = registry.sinks()[kind].model_validate(fields)
        self.ended = threading.Event()
        self.reached = self.is_last = False

    def write(self, spark: SparkSession, last: int) -> None:
        """Write all batches; the last call does not come back."""
        writer = writer_of(self.sink, self.mode)
        writer.open(spark, batch(spark, 0).schema)
        for batch_id in range(last):
            writer.write(batch(spark, batch_id), batch_id)
        if "." not in self.point:
            self._arm(writer)
        self.is_last = True
        writer.write(batch(spark, last), last)

    def wait_for_death(self) -> None:
        """Wait, as this writer is where it is to die."""
        self.reached = True
        self.ended.set()
        threading.Event().wait()

    def start_with(self, spark: SparkSession, last: int) -> None:
        """Start the thread."""
        self._given = spark, last
        self.start()

    def run(self) -> None:
        """Write, and tell when it went wrong or past its point."""
        try:
            self.write(*self._given)
        except Exception:  # noqa: BLE001 - whatever it is, the test shows it
            traceback.print_exc()
        self.ended.set()

    def _arm(self, writer: Any) -> None:
        name = "_copy" if self.point == "before_commit" else "_commit"
        real = getattr(writer, name)

        def step(*given: Any) -> None:
            real(*given)
            self.wait_for_death()

        setattr(writer, name, step)


class HangingHere(dict[str, Any]):
    """What is armed for each thread: the point of its case, in its last batch."""

    def __contains__(self, point: object) -> bool:
        case = threading.current_thread()
        if isinstance(case, Case) and case.is_last and case.point == point:
            case.wait_for_death()
        return False


def main(cases: Iterable[tuple[str, tuple[str, dict[str, Any]], str, str]], last: int, log: str) -> int:
    conf = {
        "spark.master": "local[2]",
        "spark.sql.shuffle.partitions": 1,
        "spark.sql.adaptive.enabled": False,
    }
    spark = open_session("dying", conf, Path(log))
    armed = HangingHere()
    failpoints._parse_armed = lambda _: armed
    started = [Case(*case) for case in cases]
    for case in started:
        case.start_with(spark, last)
        case.ended.wait()
    missed = [case.name for case in started if not case.reached]
    if not missed:
        os.kill(os.getpid(), signal.SIGKILL)
    sys.stderr.write(f"never where they were to die: {missed}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
