"""What a day of a run costs its page: bytes on disk, memory, and the time until it opens again.

    python benchmarks/day.py [--hours 24] [--queries 10]

Feeds the events of a day at a batch a second of each query (a start, then `batch_written` and `batch_committed` of
each batch, offsets of eight partitions) through the real feed and its run log, by a made-up clock. Printed are
the log's bytes, the most resident memory above that at the start, the CPU time an event, its making included, and
the seconds on the clock that `run --history` takes to open the run. No Spark, no servers.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.dashboard.export.prometheus import EventCounters
from millstream.dashboard.http.event_stream import EventStream
from millstream.dashboard.replay_server import load_past_run
from millstream.dashboard.run_log import RunLog
from millstream.dashboard.state import timestamps
from millstream.dashboard.state.run_state import new_run_state
from millstream.engine.events.event_bus import Event

if TYPE_CHECKING:
    from collections.abc import Iterator

START = timestamps.parse("2026-03-01T00:00:00.000Z")
PARTITIONS = 8
TRIGGER = 1.0
MEGA = 1e6


def day(queries: int, seconds: int) -> Iterator[Event]:
    """The events of a run; figures wander as those of a busy machine do."""
    chance = random.Random(1)
    names = [f"query_{number}" for number in range(queries)]
    yield Event(
        "run_started",
        "",
        {"queries": names, "guarantees": [], "pipeline": "day", "log": ""},
        timestamps.format_timestamp(START),
    )
    for name in names:
        messages = {
            "id": name,
            "run_id": name,
            "trigger": "1 second",
            "batch": None,
            "sources": [f"topic_{name}"],
        }
        yield Event("query_started", name, messages, timestamps.format_timestamp(START))
    ends = {name: [0] * PARTITIONS for name in names}
    for second in range(seconds):
        for number, name in enumerate(names):
            yield from batch(name, second, START + second + number / queries, ends[name], chance)


def batch(name: str, number: int, at: float, ends: list[int], chance: random.Random) -> Iterator[Event]:
    """One batch of a query."""
    rows = [chance.randrange(50, 150) for _ in ends]
    starts = offsets(name, ends)
    ends[:] = [end + more for end, more in zip(ends, rows, strict=True)]
    seconds = {
        "addBatch": chance.randrange(200, 500),
        "commitOffsets": chance.randrange(5, 30),
        "getBatch": 0,
        "latestOffset": chance.randrange(2, 9),
        "queryPlanning": chance.randrange(10, 40),
        "walCommit": chance.randrange(5, 30),
    }
    total = sum(seconds.values()) + chance.randrange(3)
    behind = [chance.randrange(0, 60) for _ in ends]
    newest = [end + more for end, more in zip(ends, behind, strict=True)]
    yield Event(
        "batch_written",
        name,
        {"batch": number, "sink": "delta:lake", "rows": sum(rows), "skipped": False},
        timestamps.format_timestamp(at),
    )
    yield Event(
        "batch_committed",
        name,
        {
            "batch": number,
            "began": timestamps.format_timestamp(at - total / 1000),
            "rows_in": sum(rows),
            "rows_out": sum(rows),
            "input_rate": round(sum(rows) * chance.uniform(0.9, 1.1), 1),
            "processed_rate": round(sum(rows) / total * 1000, 1),
            "duration_ms": {**seconds, "triggerExecution": total},
            "watermark": timestamps.format_timestamp(at - 300 - chance.random()),
            "newest": timestamps.format_timestamp(at - chance.random()),
            "malformed": 0,
            "expectations": {},
            "state_rows": 100_000 + chance.randrange(5000),
            "state_bytes": 30_000_000 + chance.randrange(500_000),
            "late_rows": 0,
            "sources": [
                {
                    "description": f"KafkaV2[Subscribe[topic_{name}]]",
                    "startOffset": starts,
                    "endOffset": offsets(name, ends),
                    "latestOffset": offsets(name, newest),
                    "numInputRows": sum(rows),
                }
            ],
        },
        timestamps.format_timestamp(at),
    )


def offsets(name: str, ends: list[int]) -> dict[str, dict[str, int]]:
    """Offsets as Spark tells them."""
    return {f"topic_{name}": {str(number): end for number, end in enumerate(ends)}}


def resident() -> float:
    """Resident memory of this process, in MB."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / MEGA


def main() -> None:
    """Feed, measure, open again, tell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hours", type=float, default=24)
    parser.add_argument("--queries", type=int, default=10)
    chosen = parser.parse_args()
    before, highest, records = resident(), 0.0, 0
    clock = [START]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        folded = new_run_state("day", timestamps.format_timestamp(START), live=True)
        feed = EventStream(folded, counts=EventCounters(), log=RunLog(folder), clock=lambda: clock[0])
        queries = [
            {"name": f"query_{number}", "trigger": "1 second", "trigger_seconds": TRIGGER, "sources": []}
            for number in range(chosen.queries)
        ]
        described = {
            "pipeline": "day",
            "millstream": "",
            "graph": {"nodes": [], "edges": []},
            "queries": queries,
        }
        feed.fold(Event("described", "", described, timestamps.format_timestamp(START)))
        began = time.process_time()
        for event in day(chosen.queries, round(chosen.hours * 3600)):
            clock[0] = timestamps.parse(event.at)
            feed.fold(event)
            records += 1
            if records % 50_000 == 0:
                highest = max(highest, resident() - before)
        used = time.process_time() - began
        feed.document()
        highest = max(highest, resident() - before)
        state, size = feed.document(), sum(file.stat().st_size for file in folder.iterdir())
        feed.close()
        began = time.perf_counter()
        document = load_past_run(folder, "day").document()
        opening = time.perf_counter() - began
    rows = [query["rows_in"] for query in state["queries"]]
    messages = {
        "batches": sum(query["batch"] + 1 for query in state["queries"] if query["batch"] is not None),
        "events": records,
        "disk_mb": round(size / MEGA, 1),
        "memory_mb": round(highest, 1),
        "cpu_microseconds_an_event": round(used / records * 1e6, 1),
        "seconds_to_open": round(opening, 1),
        "sums_are_right_again": rows == [query["rows_in"] for query in document["queries"]],
    }
    print(json.dumps(messages, indent=2))


if __name__ == "__main__":
    main()
