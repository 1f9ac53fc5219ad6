"""How long a person waits: to the first committed batch, cold and warm, and for commands that start no Spark.

    python benchmarks/start.py --rounds 5

Runs the e-commerce example over a small topic on the local stack. CPU is user and system time of the process
and all its descendants; the servers are not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

from measure import measure  # noqa: E402 - found by the line above

from acceptance.oracle import STREAMS  # noqa: E402
from acceptance.project import COMMAND, START, adapt, database  # noqa: E402
from millstream.devstack import stack  # noqa: E402
from millstream.devstack.servers.topics import create_topics  # noqa: E402
from millstream.spark import resources  # noqa: E402

EVENTS = 5_000
PATIENCE = 300.0


def first_batch(project: Path, env: dict[str, str]) -> float:
    """Seconds from the start of `millstream run` to the first committed batch that read something."""
    began = time.monotonic()
    running = subprocess.Popen(
        [COMMAND, "run", "--json"],
        cwd=project,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdout
    for line in running.stdout:
        event = json.loads(line)
        if event["event"] == "batch_committed" and event["rows_in"]:
            seconds = time.monotonic() - began
            running.terminate()
            running.communicate(timeout=PATIENCE)
            return seconds
    raise SystemExit(running.communicate()[1])


def runs(folder: Path, rounds: int) -> dict[str, list[float]]:
    """Times to the first batch: without a class-data archive, and with one if there is one."""
    endpoints = stack.up(folder)
    project = folder / "ecommerce"
    shutil.copytree(
        HERE.parent / "examples" / "ecommerce", project, ignore=shutil.ignore_patterns(".millstream", "lake")
    )
    os.environ["MILLSTREAM_EVENTS"] = str(EVENTS)  # the settings of a real run, not of a short test
    adapt(project, "")
    create_topics(endpoints.kafka, {stream: {} for stream in STREAMS})
    env = {**os.environ, **endpoints.environment()}
    subprocess.run(
        [COMMAND, "traffic", "--rows", str(EVENTS), "--start", START],
        cwd=project, env=env, check=True, capture_output=True,
    )  # fmt: skip
    actual: dict[str, list[float]] = {}
    for turn in range(rounds):
        for name, archive in (("without the archive", "off"), ("with the archive", "use")):
            base = f"start{turn}_{archive}"
            with psycopg.connect(endpoints.postgres, autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {base}")
            place = folder / base
            item = {
                "POSTGRES_URL": database(endpoints.postgres, base),
                "LAKE": str(place / "lake"),
                "STATE_DIR": str(place / "state"),
                "MILLSTREAM_ARCHIVE": archive,
            }
            seconds = first_batch(project, {**env, **item})
            actual.setdefault(f"first committed batch, {name}: wall s", []).append(seconds)
    return actual


def commands(folder: Path, rounds: int) -> dict[str, list[float]]:
    """CPU of commands that start no JVM."""
    example = HERE.parent / "examples" / "ecommerce"
    requests = {
        "millstream --help": [COMMAND, "--help"],
        "millstream check --fast": [COMMAND, "check", "--fast", "-f", str(example)],
        "millstream config": [COMMAND, "config", "-f", str(example)],
    }
    actual: dict[str, list[float]] = {}
    for _ in range(rounds + 1):
        for name, words in requests.items():
            actual.setdefault(f"{name}: CPU s", []).append(measure(words, folder / "log").cpu)
    # The first time compiles and reads from disk.
    return {name: values[1:] for name, values in actual.items()}


def whole_check(folder: Path, rounds: int) -> dict[str, list[float]]:
    """The check that asks Spark."""
    words = [COMMAND, "check", "-f", str(HERE.parent / "examples" / "ecommerce")]
    return {"millstream check: wall s": [measure(words, folder / "log").wall for _ in range(rounds)]}


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    folder = Path(tempfile.mkdtemp(prefix="millstream-start-"))
    try:
        actual = {**commands(folder, rounds), **whole_check(folder, rounds), **runs(folder, rounds)}
    finally:
        stack.down(folder)
        shutil.rmtree(folder, ignore_errors=True)
    print(
        f"{rounds} rounds on {resources.available_cores()} cores\n\n| what | min | median | max |\n| "
        "--- | --- | --- | --- |"
    )
    for name, values in actual.items():
        print(f"| {name} | {min(values):.2f} | {statistics.median(values):.2f} | {max(values):.2f} |")


if __name__ == "__main__":
    main()
