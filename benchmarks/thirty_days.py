"""What a pipeline keeps after many small batches: files, log entries, bytes, memory and the time of a batch.

    python benchmarks/thirty_days.py [--batches 5000] [--hour 720] [--unmaintained] [--run 300]

Thirty days of a batch each five seconds are 518,400 batches. This writes `--batches` of them without waiting: ten
dead letters each to a table of dead letters, and counts of the current minute, merged by key, to the table of a sink.
Both go through the writers of a run, without Spark. The history that a table keeps, an hour, is shortened to the time
that 720 batches (`--hour`) take. Printed are figures on the way; times are those of the 200 batches before.

`--unmaintained` leaves the tables as they become by themselves. `--run SECONDS` runs a pipeline instead, with Spark,
as fast as it can, and prints what is in its folders every tenth of that time.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable, PostCommitHookProperties, write_deltalake
from pyspark.sql.types import StructType

from millstream.connectors.api.values.dead_letter_rows import SCHEMA
from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.delta import dead_letter_writer
from millstream.connectors.delta.commit import maintenance
from millstream.connectors.delta.commit.maintenance import SHORT_HISTORY, TableMaintenance
from millstream.connectors.delta.commit.small_merge import MergeOutcome, SmallMerge
from millstream.spec.location import Location
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable

THIRTY_DAYS = 518_400
AN_HOUR = 720
"""Batches."""
WINDOW = 200
LETTERS, KEYS = 10, 20
BATCHES_PER_MINUTE = 12
START = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS = pa.schema(
    [
        ("minute", pa.timestamp("us", "UTC")),
        ("item", pa.string()),
        ("n", pa.int64()),
        ("amount", pa.float64()),
    ]
)
TYPES = {"minute": "timestamp", "item": "string", "n": "long", "amount": "double"}

SPEC = """
name: thirty_days
sources:
  ticks:
    rate: {rows_per_second: 100}
    expect: {counted: {that: value % 50 > 0, otherwise: dead_letter}}
views:
  sums: SELECT value % 1000 AS key, value AS last FROM ticks
queries:
  sums: {output_mode: update, to: {delta: {path: lake/sums, merge_on: key}}}
"""


def dead_letters(folder: Path, is_maintained: bool) -> Callable[[int], None]:
    """Return a function that writes the dead letters of a batch."""
    if not is_maintained:
        dead_letter_writer.WITHOUT_HOOKS = PostCommitHookProperties()  # type: ignore[attr-defined]
    identity = SinkIdentity("shop", "copy", "id", "dead_letters", OutputMode.APPEND)
    writer = dead_letter_writer.DeltaDeadLetterWriter(Location(folder), identity)
    spark: Any = SimpleNamespace()

    def write(batch: int) -> None:
        letter = {
            "query": "copy",
            "source": "orders",
            "topic": "orders",
            "partition": 0,
            "value": os.urandom(200),
        }
        letter |= {
            "reason": "the value is not JSON",
            "batch_id": batch,
            "at": START + timedelta(seconds=5 * batch),
        }
        rows = [{**letter, "offset": batch * LETTERS + number} for number in range(LETTERS)]
        writer.keep_rows(spark, pa.Table.from_pylist(rows, schema=SCHEMA), batch)

    return write


def merges(folder: Path, is_maintained: bool) -> Callable[[int], None]:
    """Return a function that merges a batch."""
    write_deltalake(folder, COLUMNS.empty_table(), configuration=SHORT_HISTORY if is_maintained else None)
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in TYPES.items()]
    schema = StructType.fromJson({"type": "struct", "fields": fields})
    maintained = TableMaintenance(folder) if is_maintained else None
    merge = SmallMerge(folder, ("minute", "item"), "__removed", "false", maintained)

    def write(batch: int) -> None:
        minute = START + timedelta(minutes=batch // BATCHES_PER_MINUTE)
        rows = [
            {"minute": minute, "item": f"item {number}", "n": batch, "amount": batch / 7}
            for number in range(KEYS)
        ]
        table = pa.Table.from_pylist(rows, schema=COLUMNS)
        table = table.append_column("__removed", pa.array([False] * KEYS))
        options = {"txnAppId": "id/delta", "txnVersion": str(batch), "userMetadata": "{}"}
        assert merge.commit(table, schema, options) is MergeOutcome.COMMITTED

    return write


def simulate(name: str, folder: Path, write: Callable[[int], None], batches: int, hour: int) -> None:
    """Write the batches and print what there is on the way. Keep a history of `hour` batches, Delta's own if 0."""
    points = sorted({WINDOW, 2 * WINDOW, *(batches * part // 10 for part in (1, 2, 4, 6, 8, 10))})
    maintenance.DELETION_INTERVAL = 0.0
    cpu: deque[float] = deque(maxlen=WINDOW)
    clock: deque[float] = deque(maxlen=WINDOW)
    for batch in range(batches):
        used, began = time.process_time(), time.perf_counter()
        write(batch)
        cpu.append(time.process_time() - used)
        clock.append(time.perf_counter() - began)
        if batch + 1 == WINDOW // 2 and hour:
            shorten_history(folder, hour * statistics.mean(clock))
        if batch + 1 in points:
            figures = {"table": name, "batches": batch + 1, **contents(folder), **times(cpu, clock)}
            print(json.dumps(figures), flush=True)
    rows = DeltaTable(folder).to_pyarrow_table()
    expected = batches * LETTERS if "n" not in rows.column_names else -(-batches // BATCHES_PER_MINUTE) * KEYS
    print(json.dumps({"table": name, "rows": rows.num_rows, "are_right": rows.num_rows == expected}))


def shorten_history(folder: Path, seconds: float) -> None:
    """Let the table keep this many seconds of its history, and look for old files six times in it."""
    interval = f"interval {max(1, round(seconds))} seconds"
    DeltaTable(folder).alter.set_table_properties(dict.fromkeys(SHORT_HISTORY, interval))
    maintenance.DELETION_INTERVAL = seconds / 6


def contents(folder: Path) -> dict[str, float]:
    """What a table's folder has, and the memory of this process, in MB."""
    files = list(folder.glob("*.parquet"))
    log = list((folder / "_delta_log").iterdir())
    return {
        "current_files": len(DeltaTable(folder).file_uris()),
        "files": len(files),
        "log_entries": len(log),
        "mb": round(sum(file.stat().st_size for file in (*files, *log)) / 1e6, 1),
        "memory_mb": round(int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6),
    }


def times(cpu: deque[float], clock: deque[float]) -> dict[str, float]:
    """CPU milliseconds of a batch, and its median and 95th percentile on the clock, maintenance included."""
    ordered = sorted(clock)
    return {
        "cpu_ms": round(statistics.mean(cpu) * 1000, 1),
        "median_ms": round(statistics.median(ordered) * 1000, 1),
        "p95_ms": round(ordered[int(len(ordered) * 0.95)] * 1000, 1),
    }


def run(folder: Path, seconds: float) -> None:
    """Run a pipeline for this long and print the files in its folders on the way."""
    (folder / "pipeline.yml").write_text(SPEC)
    log = (folder / "run.txt").open("w")
    command = [sys.executable, "-m", "millstream", "run"]
    process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        for _ in range(10):
            # The time that the figures are about: nothing is awaited.
            time.sleep(seconds / 10)
            print(json.dumps(folders(folder)), flush=True)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(120)


def folders(folder: Path) -> dict[str, Any]:
    """The number of batches and of files in each folder of a run, and their bytes."""
    checkpoints = folder / ".millstream" / "checkpoints"
    commits = [int(file.name) for file in checkpoints.glob("*/commits/*") if file.name.isdigit()]
    counts: dict[str, int] = {}
    size = 0
    for place, _, names in os.walk(folder):
        parts = Path(place).relative_to(folder).parts
        counts["/".join(parts[:4])] = counts.get("/".join(parts[:4]), 0) + len(names)
        size += sum((Path(place) / name).stat().st_size for name in names if (Path(place) / name).exists())
    return {"batches": max(commits, default=-1) + 1, "mb": round(size / 1e6, 1), "files": counts}


def main() -> None:
    """Simulate, or run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batches", type=int, default=5000)
    parser.add_argument("--only", choices=("letters", "merges"))
    parser.add_argument("--hour", type=int, default=AN_HOUR, help="batches of an hour")
    parser.add_argument("--unmaintained", action="store_true")
    parser.add_argument("--run", type=float, metavar="SECONDS")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="millstream-thirty-days-") as place:
        if asked.run:
            run(Path(place), asked.run)
            return
        if asked.unmaintained:
            maintenance.is_due = lambda version: version < 0
        share = f"{asked.batches / THIRTY_DAYS:.2%} of thirty days with a batch each five seconds"
        print(json.dumps({"batches": asked.batches, "that_is": share}))
        for name, start in (("letters", dead_letters), ("merges", merges)):
            if asked.only in (None, name):
                folder = Path(place) / name
                write = start(folder, not asked.unmaintained)
                simulate(name, folder, write, asked.batches, 0 if asked.unmaintained else asked.hour)


if __name__ == "__main__":
    main()
