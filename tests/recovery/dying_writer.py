"""A writer that waits for its death in its last batch: a thread of `dying_commands.py`.

A case is a list: a name, a sink as its kind and its fields, a mode and a point. The writer writes batches from 0 up
to the last one, and waits there for the end: `before_commit`, with the rows copied and the transaction open,
`after_commit`, before it could tell anybody, or at a failpoint, whose name has a dot in it.
"""

from __future__ import annotations

import sys
import threading
import traceback
from typing import TYPE_CHECKING, Any

from millstream.connectors import registry
from millstream.connectors.api.writer import SinkIdentity
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.api.sink import Sink
    from millstream.connectors.api.writer import Writer

ROWS = 100
Settings = tuple[str, dict[str, Any]]
WriterCase = tuple[str, Settings, str, str]


def batch(spark: SparkSession, batch_id: int) -> DataFrame:
    """Rows whose ids belong to this batch alone, so that a lost or doubled batch shows."""
    first = batch_id * ROWS
    return spark.range(first, first + ROWS, numPartitions=2).selectExpr("id", "concat('row ', id) AS text")


def writer_of(sink: Sink, mode: str) -> Writer:
    """The same query and checkpoint at every start."""
    return sink.writer(
        SinkIdentity("shop", "orders", "one-checkpoint", f"{sink.kind}:orders", OutputMode(mode))
    )


class DyingWriter(threading.Thread):
    """One writer, up to the point at which it waits for its death."""

    def __init__(self, name: str, settings: Settings, mode: str, point: str) -> None:
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
            traceback.print_exc(file=sys.__stderr__)
        self.ended.set()

    def _arm(self, writer: Any) -> None:
        name = "_copy" if self.point == "before_commit" else "_commit"
        real = getattr(writer, name)

        def step(*given: Any) -> None:
            real(*given)
            self.wait_for_death()

        setattr(writer, name, step)
