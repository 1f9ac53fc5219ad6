"""What a case of `millstream test` costs once Spark is up: seconds and CPU seconds, and where they go.

`python benchmarks/testing.py [CASES]` plays one case of three steps so often (20 unless given) in one session. It
prints a line a case, then what its parts took. CPU seconds are those of this process and its JVM: they tell what an
idle machine would take where this one is not idle.
"""

from __future__ import annotations

import cProfile
import os
import pstats
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.runtime.session import end
from millstream.testing.load import load_text
from millstream.testing.play import play
from millstream.testing.session import case_folder, open_tests

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.testing.case import Case, Outcome

CASE = """
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
# Functions of ours, and what each stands for in the account.
PARTS = {
    "frames": "sources and views as frames",
    "_start": "the query's start",
    "settle": "Spark's batches, waited for",
    "reports": "reading the batches' figures",
    "take": "collected rows",
}


def main() -> None:
    """Play and print."""
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    suite = load_text("case.yml", CASE, Path("case.yml").absolute(), lambda _: {})
    began = time.perf_counter()
    spark = open_tests({})
    print(f"Spark up: {time.perf_counter() - began:.2f} s; load of the machine {os.getloadavg()[0]:.1f}")
    rows = []
    for number in range(1, many + 1):
        before = cpu(spark)
        outcome = once(spark, suite.cases[0])
        rows.append((outcome.seconds, cpu(spark) - before))
        steps = ", ".join(f"{one.seconds:.2f}" for one in outcome.played)
        print(f"case {number}: {rows[-1][0]:.2f} s, CPU {rows[-1][1]:.2f} s; its steps {steps}")
    last = rows[len(rows) // 2 :]
    middle = [statistics.median(column) for column in zip(*last, strict=True)]
    print(f"median of the later half: {middle[0]:.2f} s, CPU {middle[1]:.2f} s")
    account(spark, suite.cases[0])
    spark.stop()
    end()


def once(spark: SparkSession, case: Case) -> Outcome:
    """Play the case, which must pass."""
    with case_folder() as folder:
        outcome = play(spark, case, folder)
    assert outcome.passed, outcome
    return outcome


def account(spark: SparkSession, case: Case) -> None:
    """Where the time of one case goes."""
    profile = cProfile.Profile()
    profile.enable()
    outcome = once(spark, case)
    profile.disable()
    print(f"a case of {outcome.seconds:.2f} s, under a profiler:")
    for (file, _, name), told in sorted(pstats.Stats(profile).stats.items(), key=lambda one: -one[1][3]):  # type: ignore[attr-defined]
        if "millstream/testing" in file and name in PARTS:
            print(f"  {told[3]:.3f} s  {told[0]} times  {PARTS[name]} ({Path(file).stem}.{name})")


def cpu(spark: SparkSession) -> float:
    """CPU seconds so far, of this process and its JVM."""
    jvm = spark._jvm.java.lang.ProcessHandle.current().pid()  # noqa: SLF001 - PySpark has no other way to it
    fields = Path(f"/proc/{jvm}/stat").read_text().rpartition(") ")[2].split()
    return time.process_time() + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
