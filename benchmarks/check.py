"""How long a check takes: warm a query, cold from the start, and the CPU of what needs no Spark.

    python benchmarks/check.py --rounds 5

Warm times are of the whole check (spec, rules, Spark's verdict, plans, guarantees) in one session, after one check
of each pipeline: the examples, the pipelines of the rules' pages, and a generated spec of 20 queries. Cold times are
of the command, from its start to its end. CPU is user and system time of the process and its descendants; that of
phase A alone leaves out the start of Python and its imports.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

from generated import queries, views  # noqa: E402
from measure import measure  # noqa: E402

import rule_pages  # noqa: E402 - found by the line above
from millstream.analysis.rule_pages import find_pages  # noqa: E402
from millstream.checking.batch_check import BRIEF  # noqa: E402
from millstream.checking.check import check  # noqa: E402
from millstream.pipeline.spec_file import load_spec, load_text  # noqa: E402
from millstream.spark import resources  # noqa: E402
from millstream.spark.session import open_session  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from millstream.pipeline.spec_file import LoadedSpec

EXAMPLES = HERE.parent / "examples"
COMMAND = str(Path(sys.executable).with_name("millstream"))

# Reads a spec and applies the rules twice in one process: imports are made before, and what the first time keeps
# (a text's reading) is kept for the second.
PHASE_A = """
import json, sys, time
from pathlib import Path
from millstream.analysis.rule_runner import load_rules
from millstream.cli.project import load_project
from millstream.checking.check import check
load_rules()
import millstream.connectors.registry as kinds
kinds.sources(), kinds.sinks()
for _ in range(2):
    began = time.process_time()
    check(load_project(Path(sys.argv[1]), (), None))
    print(json.dumps(time.process_time() - began))
"""


def pipelines(folder: Path) -> Iterator[tuple[str, LoadedSpec]]:
    """What is checked warm: a group's name and a pipeline of it."""
    for file in sorted(EXAMPLES.glob("*/pipeline.yml")):
        yield "examples", load_spec(file, {})
    for page in find_pages().values():
        for block in rule_pages.read(page):
            if block.file == rule_pages.SPEC and not block.files:
                yield "rule pages", load_text("pipeline.yml", block.spec, folder, {})
    yield "20 queries", load_text("pipeline.yml", queries(20), folder, {})


def warm(spark: SparkSession, folder: Path, rounds: int) -> dict[str, list[float]]:
    """Milliseconds a query by group, a figure for each query of each round."""
    actual: dict[str, list[float]] = {}
    for group, loaded in pipelines(folder):
        if loaded.pipeline is None or not loaded.pipeline.queries:
            continue
        for turn in range(rounds + 1):
            began = time.perf_counter()
            check(loaded, spark)
            each = (time.perf_counter() - began) * 1000 / len(loaded.pipeline.queries)
            if turn:
                actual.setdefault(group, []).extend([each] * len(loaded.pipeline.queries))
    return {f"warm, {group}: ms a query": times for group, times in actual.items()}


def commands(folder: Path, rounds: int) -> dict[str, list[float]]:
    """CPU of the check without Spark, and wall time of the whole check from a cold start."""
    spec = folder / "pipeline.yml"
    spec.write_text(views(100), encoding="utf-8")
    actual: dict[str, list[float]] = {}
    for turn in range(rounds + 1):
        result = subprocess.run(
            [sys.executable, "-c", PHASE_A, str(spec)], capture_output=True, text=True, check=True
        )
        first, second = (json.loads(line) for line in result.stdout.split())
        cpu = measure([COMMAND, "check", "--fast", "-f", str(spec)], folder / "log").cpu
        cold = measure([COMMAND, "check", "-f", str(EXAMPLES / "ecommerce")], folder / "log").wall
        if turn:
            actual.setdefault("phase A of 100 views: CPU s", []).append(first)
            actual.setdefault("phase A of 100 views again: CPU s", []).append(second)
            actual.setdefault("check --fast of 100 views, the command: CPU s", []).append(cpu)
            actual.setdefault("check of examples/ecommerce, cold: wall s", []).append(cold)
    return actual


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="millstream-check-") as name:
        folder = Path(name)
        actual = commands(folder, rounds)
        # As the command opens it.
        conf = {"spark.driver.defaultJavaOptions": BRIEF, "spark.master": "local[1]"}
        spark = open_session("check", conf, log=folder / "spark.log")
        os.chdir(folder)
        actual |= warm(spark, folder, rounds)
        spark.stop()
    print(
        f"{rounds} rounds on {resources.available_cores()} cores\n\n| what | min | median | max |\n| "
        "--- | --- | --- | --- |"
    )
    for what, values in actual.items():
        figures = (min(values), statistics.median(values), max(values))
        print(f"| {what} | {' | '.join(f'{figure:.3g}' for figure in figures)} |")


if __name__ == "__main__":
    main()
