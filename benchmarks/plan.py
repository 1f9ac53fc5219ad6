"""How long `plan` takes for ten queries with state: without Spark, and in a Spark session that has planned before.

    python benchmarks/plan.py

Prints CPU seconds of this process without Spark (`--fast`), and seconds on the clock with Spark, for the first round
and the fastest of the others.
"""

from __future__ import annotations

import json
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from millstream.engine.events.event_bus import EventBus
from millstream.engine.recovery.restart_check import plan_restart, plan_without_spark
from millstream.engine.run import RunOptions, lock_checkpoints, run_pipeline
from millstream.frames.build_views import build_frames
from millstream.pipeline.spec_file import load_spec
from millstream.spark.session import open_session, stop_session

QUERIES, ROUNDS = 10, 5
SPEC = """
name: shop
sources:
  orders:
    json: in
    schema: {id: string, k: string, v: bigint, at: timestamp}
    watermark: {event_time: at, delay_threshold: 10 minutes}
views:
"""


def write_spec(folder: Path) -> None:
    """Write a project with ten queries, each with its own view."""
    (folder / "in").mkdir()
    (folder / "in" / "0.json").write_text(
        json.dumps({"id": "a", "k": "x", "v": 1, "at": "2026-01-01T12:00:00Z"})
    )
    windows = "SELECT window.start AS since, k, sum(v) AS s FROM orders GROUP BY window(at, '{} minutes'), k"
    views = [f'  view{n}: "{windows.format(n + 1)}"' for n in range(QUERIES)]
    queries = [f"  query{n}: {{from: view{n}, to: {{delta: lake/{n}}}}}" for n in range(QUERIES)]
    (folder / "pipeline.yml").write_text(SPEC + "\n".join([*views, "queries:", *queries, ""]))


def main(folder: Path) -> None:
    """Run the project once, then plan its restart."""
    write_spec(folder)
    pipeline = load_spec(folder / "pipeline.yml", {}).pipeline
    assert pipeline is not None
    spark = open_session("plan", dict(pipeline.spark), log=folder / "spark.log")
    try:
        with ExitStack() as locks:
            lock_checkpoints(pipeline, list(pipeline.queries), locks)
            assert run_pipeline(spark, pipeline, RunOptions(until_caught_up=True), EventBus(), {})
        begin = time.process_time()
        plans = [plan_without_spark(pipeline, query) for query in pipeline.queries]
        print(f"without Spark: {time.process_time() - begin:.2f} CPU seconds")
        seconds = []
        for _ in range(ROUNDS):
            begin = time.perf_counter()
            views = build_frames(spark, pipeline)
            plans = [
                plan_restart(spark, pipeline, query, views[pipeline.reads(query)], {})
                for query in pipeline.queries
            ]
            seconds.append(time.perf_counter() - begin)
        assert all(plan.verdict.can_continue for plan in plans)
        print(f"with Spark: first {seconds[0]:.2f} s, then {min(seconds[1:]):.2f} s")
    finally:
        stop_session(spark)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        main(Path(made))
