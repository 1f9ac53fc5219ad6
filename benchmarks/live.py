"""What the e-commerce pipeline costs on live traffic beside the same program written by hand.

    python benchmarks/live.py --rate 50 --seconds 120 --rounds 3

In each turn a generator sends the same events, byte for byte, to fresh topics, and one program reads them from an
empty state as they come. Batch times, CPU and latency count after `--warm` seconds. A program whose tables differ
from what the journal of the traffic demands has no figures.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from confluent_kafka import Consumer, TopicPartition
from deltalake import DeltaTable

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

from measure import tree_cpu_seconds  # noqa: E402 - found by the line above
from scratch import scratch_folder  # noqa: E402

from acceptance import tables  # noqa: E402
from acceptance.oracle import STREAMS, difference, expected  # noqa: E402
from acceptance.project import COMMAND, START, adapt, database  # noqa: E402
from millstream.devstack import stack  # noqa: E402
from millstream.devstack.servers.topics import create_topics  # noqa: E402
from millstream.spark import resources  # noqa: E402
from millstream.spark.jars import jar_cache  # noqa: E402

OURS, EXPERT = "millstream", "by hand"
QUERIES = ("funnel", "purchases")
LOOK = 0.2
PATIENCE = 300.0
ENDING = 60.0


@dataclass
class Figures:
    """What one turn of one program gave. Times in seconds."""

    batches: dict[str, list[float]] = field(default_factory=dict)
    latencies: list[float] = field(default_factory=list)
    first_row: float = 0.0
    cpu: float = 0.0
    """CPU seconds per second after the warm-up."""
    batch_cpu: float = 0.0
    """CPU seconds after the warm-up, divided by the batches with records of both queries."""
    total_cpu: float = 0.0
    """CPU seconds from the start to the end of the traffic."""
    processes: int = 0
    """Runs of `readlink` and `chmod` for the program's files."""


class BatchWatch(threading.Thread):
    """Notes when each batch was planned and committed, from the files of the checkpoints, while a program runs."""

    def __init__(self, state: Path) -> None:
        super().__init__(daemon=True)
        self._state, self._over = state, threading.Event()
        self.planned: dict[tuple[str, int], float] = {}
        self.committed: dict[tuple[str, int], float] = {}
        self._content: dict[tuple[str, int], list[str]] = {}

    def run(self) -> None:
        while not self._over.wait(LOOK):
            self._look()

    def close(self) -> None:
        """Look a last time."""
        self._over.set()
        self.join()
        self._look()

    def _look(self) -> None:
        for folder, noted in (("offsets", self.planned), ("commits", self.committed)):
            for path in self._state.glob(f"**/{folder}/*"):
                query = next((name for name in QUERIES if name in path.parts), None)
                if query is None or not path.name.isdigit() or (query, int(path.name)) in noted:
                    continue
                try:
                    if folder == "offsets":
                        self._content[query, int(path.name)] = path.read_text().splitlines()[2:]
                    noted[query, int(path.name)] = path.stat().st_mtime
                except OSError:
                    continue

    def durations(self, since: float) -> dict[str, list[float]]:
        """Seconds from the plan of a batch with records to its commit, by query, of those planned since then."""
        found: dict[str, list[float]] = {name: [] for name in QUERIES}
        for (query, number), end in self._committed_with_records():
            if (at := self.planned[query, number]) >= since:
                found[query].append(end - at)
        return found

    def count(self, since: float, until: float) -> int:
        """How many batches with records were committed in between."""
        return sum(since < at <= until for _, at in self._committed_with_records())

    def _committed_with_records(self) -> list[tuple[tuple[str, int], float]]:
        return [
            ((query, number), self.committed[query, number])
            for query, number in sorted(self.planned)
            if self._content.get((query, number)) != self._content.get((query, number - 1))
            and (query, number) in self.committed
        ]


@dataclass
class Bench:
    """The servers, the arguments and what was measured."""

    folder: Path
    kafka: str
    postgres: str
    asked: argparse.Namespace
    figures: dict[str, list[Figures]] = field(default_factory=dict)

    def measure(self, name: str, turn: int) -> Figures:
        """One turn of one program."""
        prefix = f"t{turn}{'o' if name == OURS else 'h'}_"
        place = self.folder / prefix
        shutil.copytree(
            HERE.parent / "examples" / "ecommerce",
            place,
            ignore=shutil.ignore_patterns(".millstream", "lake"),
        )
        adapt(place, prefix)
        spec = (place / "pipeline.yml").read_text()
        (place / "pipeline.yml").write_text(
            spec.replace("trigger: 5 seconds", f"trigger: {self.asked.trigger}")
        )
        create_topics(self.kafka, {f"{prefix}{stream}": {} for stream in STREAMS})
        with psycopg.connect(self.postgres, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {prefix}db")
        url = database(self.postgres, f"{prefix}db")
        env = {
            **os.environ, "KAFKA": self.kafka, "POSTGRES_URL": url, "LAKE": str(place / "lake"),
            "STATE_DIR": str(place / "state"), "PATH": _counting_path(place),
            "MILLSTREAM_ARCHIVE": os.environ.get("MILLSTREAM_ARCHIVE", "use"),
        }  # fmt: skip
        (place / "processes").touch()
        journal, watch = place / "journal.jsonl", BatchWatch(place / "state")
        with (place / "log").open("wb") as log:
            watch.start()
            sending = subprocess.Popen(
                [COMMAND, "traffic", "--rate", str(self.asked.rate), "--start", START, "--journal", str(journal)],
                cwd=place, env=env, stdout=log, stderr=log,
            )  # fmt: skip
            began = time.time()
            running = subprocess.Popen(
                self._command(name, place, url, prefix), cwd=place, env=env, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
            try:
                # The times that the figures are about: nothing is awaited.
                time.sleep(self.asked.warm)
                warm, warm_cpu = time.time(), tree_cpu_seconds(running.pid)
                time.sleep(self.asked.seconds)
                end, end_cpu = time.time(), tree_cpu_seconds(running.pid)
                sending.send_signal(signal.SIGINT)
                sending.wait(PATIENCE)
                self._await_tables(name, place, url, journal, prefix, running)
                running.terminate()
                try:
                    running.wait(ENDING)
                except subprocess.TimeoutExpired:
                    os.killpg(running.pid, signal.SIGKILL)
            finally:
                watch.close()
                for process in (sending, running):
                    if process.poll() is None:
                        process.kill()
                        process.wait()
        seen = self._commits(place / "lake" / "funnel")
        figures = Figures(
            batches=watch.durations(warm),
            latencies=self._latencies(seen, journal, prefix, warm, end),
            first_row=next(at for at, total in seen if total) - began,
            cpu=(end_cpu - warm_cpu) / (end - warm),
            batch_cpu=(end_cpu - warm_cpu) / max(1, watch.count(warm, end)),
            total_cpu=end_cpu,
            processes=sum(f"{place}/" in line for line in (place / "processes").read_text().splitlines()),
        )
        self.figures.setdefault(name, []).append(figures)
        return figures

    def _command(self, name: str, place: Path, url: str, prefix: str) -> list[str]:
        if name == OURS:
            return [COMMAND, "run", "--json", "--no-page"]
        locked = ",".join(str(path) for path in jar_cache.ensure_jars("spark"))
        words = {
            "kafka": self.kafka, "postgres": url, "lake": place / "lake", "state": place / "state",
            "catalog": place / "data" / "product_catalog", "jars": locked, "trigger": self.asked.trigger,
            "prefix": prefix,
        }  # fmt: skip
        given = [word for key, value in words.items() for word in (f"--{key}", str(value))]
        return [sys.executable, str(HERE / "ecommerce" / "handwritten.py"), *given]

    def _await_tables(
        self, name: str, place: Path, url: str, journal: Path, prefix: str, running: subprocess.Popen[bytes]
    ) -> None:
        """Wait until the tables are right. A program whose tables stay wrong has no figures."""
        wanted = expected([journal], self.kafka, place / "data" / "product_catalog", prefix)
        deadline = time.monotonic() + PATIENCE
        while True:
            lake = place / "lake"
            told = (
                difference(wanted.funnel, tables.funnel(lake / "funnel"), "funnel"),
                difference(wanted.purchases, tables.parquet(lake / "purchases"), "purchases in Parquet"),
                difference(wanted.purchases, tables.postgres(url), "purchases in Postgres"),
            )
            wrong = "\n".join(text for text in told if text)
            if not wrong:
                return
            if time.monotonic() > deadline or running.poll() is not None:
                log = (place / "log").read_text(errors="replace")[-3000:]
                raise SystemExit(f"{name} gave other tables than it should:\n{wrong}\n{log}")
            # Nothing tells that a table of another process is complete: it is read again.
            time.sleep(1)

    def _commits(self, funnel: Path) -> list[tuple[float, int]]:
        """When each version of the funnel appeared, and how many events it had counted."""
        found = []
        for path in sorted((funnel / "_delta_log").glob("*.json")):
            held: Any = DeltaTable(str(funnel), version=int(path.stem)).to_pyarrow_table()
            counts = [sum(held[f"{kind}_count"].to_pylist()) for kind in ("click", "cart", "purchase")]
            found.append((path.stat().st_mtime, sum(counts)))
        return found

    def _latencies(
        self, seen: list[tuple[float, int]], journal: Path, prefix: str, since: float, until: float
    ) -> list[float]:
        """Seconds from the time of each counted event, as its producer sent it, to the first table that counts it.

        Events are counted in the order in which they were sent.
        """
        lines = map(json.loads, journal.read_text().splitlines())
        good = {(one["topic"], one["partition"], one["offset"]) for one in lines if one["kind"] == "good"}
        times = sorted(at for place, at in _times(self.kafka, prefix) if place in good)
        found, place = [], 0
        for number, at in enumerate(times, 1):
            while place < len(seen) and seen[place][1] < number:
                place += 1
            if since <= at <= until and place < len(seen):
                found.append(seen[place][0] - at)
        return found


def _counting_path(place: Path) -> str:
    """A search path whose first folder has `readlink` and `chmod` that note each run in `processes`."""
    folder = place / "bin"
    folder.mkdir()
    for name in ("readlink", "chmod"):
        script = folder / name
        script.write_text(f'#!/bin/sh\necho "$@" >>{place}/processes\nexec {shutil.which(name)} "$@"\n')
        script.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def _times(kafka: str, prefix: str) -> list[tuple[tuple[str, int, int], float]]:
    """The place of each record and the time at which its producer sent it, in seconds since 1970."""
    found = []
    reader = Consumer({"bootstrap.servers": kafka, "group.id": "live"})
    for stream in STREAMS:
        topic = f"{prefix}{stream}"
        partitions = reader.list_topics(topic, timeout=60).topics[topic].partitions
        left = sum(reader.get_watermark_offsets(TopicPartition(topic, n), 60)[1] for n in partitions)
        reader.assign([TopicPartition(topic, n, 0) for n in partitions])
        while left:
            batch = reader.consume(min(10_000, left), timeout=60)
            left -= len(batch)
            found += [((topic, one.partition(), one.offset()), one.timestamp()[1] / 1000) for one in batch]
    reader.close()
    return found


def _percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def report(bench: Bench) -> str:
    """The figures as Markdown: the median of the rounds, and their least and most."""
    measures: dict[str, Any] = {
        f"{query}: batch, median, s": lambda one, query=query: _percentile(one.batches[query], 0.5)
        for query in QUERIES
    }
    measures |= {
        f"{query}: batch, p95, s": lambda one, query=query: _percentile(one.batches[query], 0.95)
        for query in QUERIES
    }
    measures |= {
        "event to row in Delta, p50, s": lambda one: _percentile(one.latencies, 0.5),
        "event to row in Delta, p99, s": lambda one: _percentile(one.latencies, 0.99),
        "first row in the funnel, s": lambda one: one.first_row,
        "CPU s per second, warm": lambda one: one.cpu,
        "CPU s of a batch, warm": lambda one: one.batch_cpu,
        "CPU s from the start": lambda one: one.total_cpu,
        "`readlink` and `chmod` run for its files": lambda one: one.processes,
    }
    asked, names = bench.asked, list(bench.figures)
    lines = [
        f"{asked.rate:g} events a second, trigger {asked.trigger}, {asked.seconds:g} s after a warm-up of "
        f"{asked.warm:g} s, {len(bench.figures[names[0]])} rounds, {resources.available_cores()} cores; load "
        f"{os.getloadavg()[1]:.1f} at the end",
        "",
        f"| what | {' | '.join(names)} | {OURS} / {EXPERT} |",
        f"| --- |{' --- |' * (len(names) + 1)}",
    ]
    for what, of in measures.items():
        values = {name: [of(one) for one in figures] for name, figures in bench.figures.items()}
        cells = [_spread(values[name]) for name in names]
        pairs = zip(values.get(OURS, []), values.get(EXPERT, []), strict=False)
        ratios = [one / two for one, two in pairs if two]
        lines.append(f"| {what} | {' | '.join(cells)} | {_spread(ratios) if ratios else ''} |")
    return "\n".join(lines) + "\n"


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def main() -> None:
    """Start the servers, measure in turn, report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate", type=float, default=50.0, help="Events a second, of all topics together.")
    parser.add_argument("--trigger", default="5 seconds")
    parser.add_argument("--warm", type=float, default=60.0, help="Seconds that do not count.")
    parser.add_argument("--seconds", type=float, default=60.0, help="Seconds that count.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=(OURS, EXPERT))
    parser.add_argument("--keep", action="store_true", help="Leave the folder for a look.")
    asked = parser.parse_args()
    os.environ["MILLSTREAM_EVENTS"] = "1"  # the settings of a real run, not of a short test
    names = [asked.only] if asked.only else [OURS, EXPERT]
    with scratch_folder("live", keep=asked.keep) as folder:
        endpoints = stack.up(folder)
        bench = Bench(folder, endpoints.kafka, endpoints.postgres, asked)
        for turn in range(asked.rounds):
            for name in names if turn % 2 == 0 else reversed(names):
                one = bench.measure(name, turn)
                batches = {query: f"{_percentile(times, 0.5):.2f}" for query, times in one.batches.items()}
                print(
                    f"round {turn + 1} {name}: batches {batches}, CPU {one.cpu:.2f} a second, "
                    f"{one.batch_cpu:.2f} a batch, "
                    f"first row after {one.first_row:.1f} s",
                    flush=True,
                )
        print(report(bench))


if __name__ == "__main__":
    main()
