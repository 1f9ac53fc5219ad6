"""Asks sinks that are down whether they are back, and delivers what waits for them, beside the batches."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from millstream.runtime.deferred import DeferredWriter

# Seconds between two looks. A look costs the reading of a folder's names; a sink is asked at its own, longer waits.
EVERY = 1.0
# A run that ends waits so long, in seconds, for a delivery that is under way. One that takes longer is cut off with
# the process: it is in the sink or not, and stays set aside until the next start has asked.
PATIENCE = 30.0


class Probing:
    """A thread for the sinks of one query that may set batches aside.

    It needs no batch to come: a topic may be quiet while a sink comes back. What ends a query, such as a sink that
    another run has taken over, ends only this thread; the writer raises it at the next batch.
    """

    def __init__(self, query: str, writers: Sequence[DeferredWriter]) -> None:
        self._query = query
        self._writers = writers
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, spark: SparkSession) -> None:
        """Begin, once the writers are open."""
        if self._writers and self._thread is None:
            name = f"sinks of {self._query} that are down"
            self._thread = threading.Thread(target=self._run, args=(spark,), name=name, daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End behind the delivery that is under way; before the writers are closed."""
        self._ended.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(PATIENCE)

    def _run(self, spark: SparkSession) -> None:
        # Of the query's own share: deliveries take no cores from other queries.
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", self._query)
        waiting = list(self._writers)
        while waiting and not self._ended.wait(EVERY):
            for writer in list(waiting):
                try:
                    writer.probe()
                    writer.drain(self._ended)
                except Exception:  # noqa: BLE001 - the writer keeps what ends a query for its next batch
                    waiting.remove(writer)
