"""What a case of `millstream test` costs once Spark is up: seconds and CPU seconds, and where they go.

    python benchmarks/testing.py [--cases 20] [--moving] [--cold] [--quiet]

Plays one case of three steps again and again in one session: a micro-batch a step, or, with `--moving`, one whose
watermark moves twice, for which Spark has a batch without data each time, five in all. It prints a line a case, then
what the parts of the later half took. CPU seconds are those of this process, its JVM and the processes that the JVM
started: they tell what an idle machine would take where this one is not idle.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections import Counter
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.spark.session import shut_down_jvm
from millstream.testing.files.loader import load_text
from millstream.testing.harness.harness import Harness
from millstream.testing.harness.manual_clock import ManualClockQuery
from millstream.testing.harness.memory_stream import Line
from millstream.testing.harness.memory_streams import MemoryStreams
from millstream.testing.harness.query_start import TestedQuery
from millstream.testing.harness.session import create_case_folder, open_tests
from millstream.testing.runner.execute import run_case
from millstream.testing.runner.warm_up import warm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.testing.model import Case, Outcome

# The load, averaged over a minute, below which nobody else works on the machine to speak of.
QUIET = 0.5
COUNTED = """
pipeline:
  name: shop
  sources:
    clicks:
      kafka: {bootstrap_servers: "localhost:1", subscribe: clicks}
      schema: {event_id: string, user_id: string}
      on_malformed: dead_letter
  views:
    users: SELECT user_id, count(*) AS clicks FROM clicks GROUP BY user_id
  queries:
    users: {output_mode: update, to: {delta: {path: lake/users, merge_on: [user_id]}}}
tests:
  a user's clicks are counted over all batches:
    steps:
      - feed: {clicks: [{event_id: a, user_id: u1}]}
        expect: [{user_id: u1, clicks: 1}]
      - feed: {clicks: [{event_id: b, user_id: u2}, {event_id: c, user_id: u1}]}
        expect: [{user_id: u1, clicks: 2}, {user_id: u2, clicks: 1}]
      - feed: {clicks: [{event_id: d, user_id: u2}]}
        expect: [{user_id: u2, clicks: 2}]
"""
LATE = """
pipeline:
  name: shop
  sources:
    clicks:
      kafka: {bootstrap_servers: "localhost:1", subscribe: clicks}
      schema: {event_id: string, user_id: string, event_time: timestamp}
      watermark: {event_time: event_time, delay_threshold: 5 minutes}
      on_malformed: dead_letter
  views:
    funnel: |
      SELECT window.start AS window_start, count(*) AS click_count
      FROM clicks GROUP BY window(event_time, '15 minutes')
  queries:
    funnel: {output_mode: update, to: {delta: {path: lake/funnel, merge_on: [window_start]}}}
tests:
  a late click is dropped:
    steps:
      - feed: {clicks: [{event_id: a, user_id: u1, event_time: "2026-01-01 12:01:00"}]}
        expect: [{window_start: "2026-01-01 12:00:00", click_count: 1}]
      - feed: {clicks: [{event_id: b, user_id: u2, event_time: "2026-01-01 12:31:00"}]}
        expect_watermark: "2026-01-01 12:26:00"
      - feed: {clicks: [{event_id: c, user_id: u3, event_time: "2026-01-01 12:05:00"}]}
        expect: []
        expect_dropped: 1
"""
# Functions of ours, and what each stands for in the account: its own time, without that of others in it.
PARTS: tuple[tuple[Any, str, str], ...] = (
    (Harness, "__enter__", "a session of its own"),
    (MemoryStreams, "frames", "sources and views as frames"),
    (TestedQuery, "start", "writers, and what the checkpoint tells"),
    (ManualClockQuery, "start", "the query's start"),
    (Line, "add", "rows fed"),
    (ManualClockQuery, "settle", "Spark's batches, and their rows collected"),
    (ManualClockQuery, "reports", "reading the batches' figures"),
    (Harness, "__exit__", "the end"),
)


class Meter:
    """Adds up seconds and CPU seconds of `PARTS`."""

    def __init__(self, spark: SparkSession) -> None:
        self.jvm = spark._jvm.java.lang.ProcessHandle.current().pid()  # noqa: SLF001 - PySpark has no other way to it
        self.seconds: Counter[str] = Counter()
        self.cpu: Counter[str] = Counter()
        self.times: Counter[str] = Counter()
        self._inner: list[tuple[float, float]] = []
        for owner, name, what in PARTS:
            setattr(owner, name, self._timed(getattr(owner, name), what))

    def now(self) -> float:
        """CPU seconds so far of this process, its JVM, and processes of the JVM that have ended."""
        # The clock of another process by its number, as the kernel has it: sched clock, all threads.
        jvm = time.clock_gettime((~self.jvm << 3) | 2)
        fields = Path(f"/proc/{self.jvm}/stat").read_text().rpartition(") ")[2].split()
        ended = (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
        return time.process_time() + jvm + ended

    def clear(self) -> None:
        """Begin anew."""
        for counter in (self.seconds, self.cpu, self.times):
            counter.clear()

    def _timed(self, function: Any, what: str) -> Any:
        @wraps(function)
        def timed(*args: Any, **more: Any) -> Any:
            began, cpu = time.perf_counter(), self.now()
            self._inner.append((0.0, 0.0))
            try:
                return function(*args, **more)
            finally:
                seconds, used = time.perf_counter() - began, self.now() - cpu
                within = self._inner.pop()
                self.seconds[what] += seconds - within[0]
                self.cpu[what] += used - within[1]
                self.times[what] += 1
                if self._inner:
                    around = self._inner[-1]
                    self._inner[-1] = (around[0] + seconds, around[1] + used)

        return timed


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--moving", action="store_true", help="the watermark moves twice: five micro-batches")
    parser.add_argument("--cold", action="store_true", help="without the test of one row that warms the JVM")
    parser.add_argument(
        "--quiet", action="store_true", help=f"wait until the machine's load is below {QUIET}"
    )
    args = parser.parse_args()
    many = args.cases
    while args.quiet and os.getloadavg()[0] > QUIET:
        # Nothing tells that a machine has come to rest: its load is asked for.
        time.sleep(5)
    text = LATE if args.moving else COUNTED
    suite = load_text("case.yml", text, Path("case.yml").absolute(), lambda _: {})
    began = time.perf_counter()
    spark = open_tests({})
    if not args.cold:
        warm(spark)
    print(f"Spark up: {time.perf_counter() - began:.2f} s; load of the machine {os.getloadavg()[0]:.1f}")
    meter, rows = Meter(spark), []
    for number in range(1, many + 1):
        if number == many // 2 + 1:
            meter.clear()
        before = meter.now()
        outcome = run_once(spark, suite.cases[0])
        rows.append((outcome.seconds, meter.now() - before))
        steps = ", ".join(f"{result.seconds:.2f}" for result in outcome.results)
        print(f"case {number}: {rows[-1][0]:.2f} s, CPU {rows[-1][1]:.2f} s; its steps {steps}")
    last = rows[len(rows) // 2 :]
    middle = [statistics.median(column) for column in zip(*last, strict=True)]
    print(f"median of the later half: {middle[0]:.2f} s, CPU {middle[1]:.2f} s")
    for what, times in meter.times.items():
        second, used = meter.seconds[what] / len(last), meter.cpu[what] / len(last)
        print(f"  {second:.3f} s  CPU {used:.3f} s  {times / len(last):.0f} times  {what}")
    spark.stop()
    shut_down_jvm()


def run_once(spark: SparkSession, case: Case) -> Outcome:
    """Play the case, which must pass."""
    with create_case_folder() as folder:
        outcome = run_case(spark, case, folder)
    assert outcome.has_passed, outcome
    return outcome


if __name__ == "__main__":
    main()
