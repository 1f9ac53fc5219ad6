"""Probe sinks that are down and deliver their spooled batches in the background."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import CheckpointError
from millstream.engine.background_threads import BackgroundThread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from millstream.engine.delivery.spooling_writer import SpoolingWriter

# Seconds between two checks. A check lists a folder; the sink itself is probed at its own, longer intervals.
EVERY = 1.0
# At its end a run waits this many seconds for a delivery in progress. A longer delivery is cut off with the process.
# The sink then has the batch or not, and the batch stays spooled until the next start has asked the sink.
PATIENCE = 30.0


class SpoolRetry:
    """A thread for the sinks of one query that may spool batches.

    The thread needs no new batch, because a topic may be quiet while a sink comes back. An error that ends a query,
    such as a sink that another run has taken over, ends only this thread. The writer raises it at the next batch, and
    the query finds a `loss` without one.
    """

    def __init__(self, query: str, writers: Sequence[SpoolingWriter]) -> None:
        self._query = query
        self._writers = writers
        self._ended = threading.Event()
        self._thread: BackgroundThread | None = None

    def start(self, spark: SparkSession) -> None:
        """Start the thread, once the writers are open."""
        if self._writers and self._thread is None:
            name = f"sinks of {self._query} that are down"
            self._thread = BackgroundThread(name, partial(self._run, spark))
            self._thread.start()

    @property
    def loss(self) -> CheckpointError | None:
        """Why the checkpoint cannot continue, such as another run that has taken it over; None if unknown."""
        errors = (writer.fatal_error for writer in self._writers)
        return next((error for error in errors if isinstance(error, CheckpointError)), None)

    def close(self) -> None:
        """End after the delivery in progress. Call it before the writers are closed."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(PATIENCE)

    def _run(self, spark: SparkSession) -> None:
        # Use the query's own scheduler pool, so that deliveries take no cores from other queries.
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", self._query)
        active_writers = list(self._writers)
        while active_writers and not self._ended.wait(EVERY):
            for writer in list(active_writers):
                try:
                    writer.probe()
                    writer.deliver_spooled(self._ended)
                except Exception:  # noqa: BLE001 - the writer raises what ends a query at its next batch
                    # Anything else passes, such as an outage of the file system with the spool.
                    if writer.fatal_error is not None:
                        active_writers.remove(writer)
