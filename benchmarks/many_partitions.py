"""What the page, the metrics and the log of a run cost with many queries and partitions: CPU time and sizes.

    python benchmarks/many_partitions.py [--sizes 2x12 10x100 100x100 10x1000 100x1000] [--batches 20]

Plays progress reports, as long as Spark's, through what handles them in a run: the listener, the bus of events, the
state of the page and the run's log. Each size is so many queries with a topic of so many partitions each. After each
batch its topic's end is recorded, and once a round the page's state and the metrics are asked for. No Spark and no
broker: what they need for as many is not in the figures. CPU time is of this process.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.dashboard.export.prometheus import EventCounters, format_metrics
from millstream.dashboard.http.event_stream import EventStream
from millstream.dashboard.run_log import RunLog
from millstream.dashboard.state.run_state import new_run_state
from millstream.engine.events.event_bus import Event
from millstream.engine.events.progress_listener import extract_metrics
from millstream.spec.secrets.redaction import redact_deep

if TYPE_CHECKING:
    from collections.abc import Iterator

TRIGGER = 5.0
SIZES = ("2x12", "10x100", "100x100", "10x1000", "100x1000")


def text(at: float) -> str:
    """A time as Spark writes it."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def progress(query: str, topic: str, partitions: int, batch: int, at: float) -> str:
    """The report of one batch that read fifty records of each partition."""

    def offsets(more: int) -> dict[str, dict[str, int]]:
        return {topic: {str(number): 4_000_000 + 50 * batch + more for number in range(partitions)}}

    return json.dumps(
        {
            "name": query,
            "batchId": batch,
            "timestamp": text(at - 2),
            "numInputRows": 50 * partitions,
            "inputRowsPerSecond": 10.0 * partitions,
            "processedRowsPerSecond": 25.0 * partitions,
            "durationMs": {"addBatch": 1700, "queryPlanning": 80, "walCommit": 20, "triggerExecution": 2000},
            "eventTime": {"watermark": text(at - 300)},
            "stateOperators": [{"numRowsTotal": 9000, "memoryUsedBytes": 3_000_000}],
            "observedMetrics": {},
            "sources": [
                {
                    "description": f"KafkaV2[Subscribe[{topic}]]",
                    "startOffset": offsets(-50),
                    "endOffset": offsets(0),
                    "latestOffset": offsets(3),
                    "numInputRows": 50 * partitions,
                }
            ],
        }
    )


class Meter:
    """CPU seconds and times of each step."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.times: Counter[str] = Counter()

    @contextmanager
    def of(self, step: str) -> Iterator[None]:
        """Add the CPU time of what is inside."""
        began = time.process_time()
        yield
        self.seconds[step] += time.process_time() - began
        self.times[step] += 1

    def milliseconds(self, step: str) -> float:
        """The mean of a step."""
        return 1000 * self.seconds[step] / self.times[step]


def play(queries: int, partitions: int, batches: int, folder: Path) -> dict[str, Any]:
    """Play so many batches of each query, and return the figures."""
    topics = {f"query_{number}": f"topic_{number}" for number in range(queries)}
    began = time.time() - TRIGGER * batches
    log = RunLog(folder)
    feed = EventStream(new_run_state("run", text(began), live=True), counts=EventCounters(), log=log)
    for query, topic in topics.items():
        data = {"id": query, "run_id": query, "trigger": "5 seconds", "batch": None, "sources": [topic]}
        feed.fold(Event("query_started", query, data, text(began)))
    meter, logged, state, metrics = Meter(), 0, "", ""
    for batch in range(batches):
        at = began + TRIGGER * (batch + 1)
        for query, topic in topics.items():
            report = progress(query, topic, partitions, batch, at)
            with meter.of("event"):
                event = Event("batch_committed", query, extract_metrics(json.loads(report)), text(at))
                redact_deep(event.data)
                feed.fold(event)
            logged += len(event.to_json())
            ends = {topic: dict.fromkeys(range(partitions), 4_000_000 + 50 * batch + 9)}
            with meter.of("ends"):
                feed.observe_ends(topic, ends, at)
        with meter.of("state"):
            state = json.dumps(feed.document())
        with meter.of("metrics"):
            metrics = format_metrics(feed.document(), feed.partitions, feed.counts, 0)
    log.close()
    events = queries * batches
    return {
        "queries x partitions": f"{queries:,} x {partitions:,}",
        "report, kB": len(report) / 1e3,
        "event, ms": meter.milliseconds("event"),
        "ends, ms": meter.milliseconds("ends"),
        "state, ms": meter.milliseconds("state"),
        "state, kB": len(state) / 1e3,
        "metrics, ms": meter.milliseconds("metrics"),
        "metrics, kB": len(metrics) / 1e3,
        "log, kB a batch": logged / events / 1e3,
        "busy, % of a core": 100 * queries * meter.milliseconds("event") / 1000 / TRIGGER,
    }


def main() -> int:
    """Play all sizes, and print a row for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", default=SIZES, metavar="QUERIESxPARTITIONS")
    parser.add_argument("--batches", type=int, default=20, help="of each query")
    chosen = parser.parse_args()
    for index, size in enumerate(chosen.sizes):
        queries, partitions = map(int, size.split("x"))
        with tempfile.TemporaryDirectory() as folder:
            figures = play(queries, partitions, chosen.batches, Path(folder))
        if index == 0:
            print(" | ".join(figures))
        print(" | ".join(value if isinstance(value, str) else f"{value:.4g}" for value in figures.values()))
    print(
        f"largest memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
