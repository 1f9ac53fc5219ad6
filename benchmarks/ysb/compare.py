"""The Yahoo streaming benchmark: Millstream beside PySpark as tutorials write it, in turn over one topic.

    python benchmarks/ysb/compare.py --events 1000000 --rounds 5
    python benchmarks/ysb/compare.py --events 1000000 --rounds 5 --flink ~/flink

Fills a topic once; then each program catches up from nothing, into an empty Postgres database. Both read the same
number of records in a batch. A program whose counts differ from those of the generator has no figures.

Rates: `whole` counts the seconds of the process, with the start of Spark; `steady` those from the commit of the first
batch to the commit of the last. Flink SQL, with the folder of its jars (fetched if it is missing), has windows in
place of batches.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import statistics
import sys
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path

import psycopg
from confluent_kafka import Producer

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE), str(HERE.parents[1] / "tests")]

import flink  # noqa: E402 - found by the line above
from events import AdEvents  # noqa: E402
from measure import measure  # noqa: E402
from scratch import scratch_folder  # noqa: E402

from acceptance.project import database  # noqa: E402
from millstream.devstack import stack  # noqa: E402
from millstream.devstack.servers.topics import create_topics  # noqa: E402
from millstream.spark import resources  # noqa: E402
from millstream.spark.jars import jar_cache  # noqa: E402

OURS, TUTORIAL, ONE_BATCH, FLINK = "millstream", "tutorial", "tutorial, one batch", "Flink SQL"
TOPIC, PARTITIONS = "ads", 4


@dataclass(frozen=True)
class Figures:
    """One run of one program: rows per second of two kinds, and CPU seconds per million rows."""

    whole: float
    steady: float
    cpu: float


@dataclass
class Bench:
    """The servers, what was sent, and what was measured."""

    folder: Path
    kafka: str
    postgres: str
    asked: argparse.Namespace
    generator: AdEvents = field(init=False)
    figures: dict[str, list[Figures]] = field(default_factory=dict)

    def fill(self) -> None:
        """Send the events, to each partition in turn, and write the table of ads."""
        create_topics(self.kafka, {TOPIC: {"partitions": str(PARTITIONS)}})
        self.generator = AdEvents(self.asked.seed)
        producer = Producer(
            {"bootstrap.servers": self.kafka, "linger.ms": 50, "queue.buffering.max.messages": 2_000_000}
        )
        for number, event in enumerate(self.generator.events(self.asked.events)):
            producer.produce(TOPIC, event, partition=number % PARTITIONS)
            if number % 10_000 == 0:
                producer.poll(0)
        if left := producer.flush(300):
            raise SystemExit(f"{left} events did not reach the broker")
        (self.folder / "ads").mkdir()
        with (self.folder / "ads" / "ads.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("ad_id", "campaign_id"), *self.generator.ads])

    def measure(self, name: str, turn: int) -> Figures:
        """One run of one program, from nothing."""
        place = self.folder / f"turn{turn}-{name.replace(', ', '-').replace(' ', '-')}"
        shutil.copytree(self.folder / "ads", place / "data" / "ads")
        self._write_spec(place)
        base = f"ysb{turn}_{(OURS, TUTORIAL, ONE_BATCH, FLINK).index(name)}"
        with psycopg.connect(self.postgres, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {base}")
        url = database(self.postgres, base)
        env = {
            **os.environ, "KAFKA": self.kafka, "POSTGRES_URL": url, "TOPIC": TOPIC,
            "BATCH": str(self.asked.batch), "PYSPARK_PYTHON": sys.executable,
            "MILLSTREAM_ARCHIVE": os.environ.get("MILLSTREAM_ARCHIVE", "use"),
        }  # fmt: skip
        log = place / "log"
        cost = measure(self._command(name, place, url), log, cwd=place, env=env)
        if cost.code:
            raise SystemExit(f"{name} ended with {cost.code}:\n{log.read_text(errors='replace')[-4000:]}")
        self._verify(name, url)
        figures = Figures(
            self.asked.events / cost.wall,
            flink.steady_rate(log, self.generator.rate) if name == FLINK else self._steady(place),
            cost.cpu / self.asked.events * 1e6,
        )
        self.figures.setdefault(name, []).append(figures)
        return figures

    def _write_spec(self, place: Path) -> None:
        shutil.copy(HERE / "pipeline.yml", place)

    def _command(self, name: str, place: Path, url: str) -> list[str]:
        if name == OURS:
            return [sys.executable, "-m", "millstream", "run", "--until-caught-up", "--json", "--no-page"]
        if name == FLINK:
            return flink.command(
                self.asked.flink, self.kafka, TOPIC, place / "data" / "ads" / "ads.csv", place / "state", url
            )
        words = {
            "kafka": self.kafka, "topic": TOPIC, "postgres": url, "ads": place / "data" / "ads",
            "checkpoint": place / "checkpoint",
            "jars": ",".join(str(path) for path in jar_cache.ensure_jars("spark")),
            "batch": 0 if name == ONE_BATCH else self.asked.batch,
        }  # fmt: skip
        return [
            sys.executable,
            str(HERE / "tutorial.py"),
            *(f"--{key}={value}" for key, value in words.items()),
        ]

    def _steady(self, place: Path) -> float:
        """Rows per second after the first batch, from the times of the files that commit the batches with rows."""
        commits = sorted(
            (int(path.name), path.stat().st_mtime) for path in place.rglob("commits/*") if path.name.isdigit()
        )
        batches = -(-self.asked.events // self.asked.batch)
        if not 1 < batches <= len(commits):
            return float("nan")
        rows = self.asked.events - self.asked.batch
        return rows / (commits[batches - 1][1] - commits[0][1])

    def _verify(self, name: str, url: str) -> None:
        """Are the counts right? A program that is fast and wrong has no figures."""
        with psycopg.connect(url) as connection:
            rows = connection.execute("SELECT campaign_id, window_start, views FROM counts").fetchall()
        actual = {(campaign, start.astimezone(UTC)): views for campaign, start, views in rows}
        if actual != dict(self.generator.counts):
            wrong = set(actual.items()) ^ set(self.generator.counts.items())
            raise SystemExit(f"{name} counted otherwise, {len(wrong)} rows, such as {sorted(wrong)[:3]}")


def report(bench: Bench) -> str:
    """The figures as Markdown: the median of the rounds, and their least and most."""
    asked, names = bench.asked, list(bench.figures)
    others = [name for name in names if name != OURS and OURS in names]
    lines = [
        f"{asked.events:,} events in {PARTITIONS} partitions, batches of {asked.batch:,}, "
        f"{len(bench.figures[names[0]])} rounds, {resources.available_cores()} cores, load "
        f"{os.getloadavg()[1]:.1f} at the end",
        "",
        f"| what | {' | '.join(names)} | {' | '.join(f'{OURS} / {other}' for other in others)} |",
        f"| --- |{' --- |' * (len(names) + len(others))}",
    ]
    for what, of in (
        ("rows per second, whole process", lambda run: run.whole),
        ("rows per second, after the first batch", lambda run: run.steady),
        ("CPU seconds per million rows", lambda run: run.cpu),
    ):
        values = {name: [of(run) for run in runs] for name, runs in bench.figures.items()}
        ratios = [
            [own / theirs for own, theirs in zip(values.get(OURS, []), values[other], strict=True)]
            for other in others
        ]
        digits = 0 if "rows per second" in what else 1
        cells = [_spread(values[name], digits) for name in names] + [_spread(ratio, 2) for ratio in ratios]
        lines.append(f"| {what} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _spread(values: list[float], digits: int) -> str:
    if not values or any(value != value for value in values):
        return "-"
    return f"{statistics.median(values):,.{digits}f} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"


def main() -> None:
    """Start the servers, fill the topic, measure in turn, report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=200_000, help="Most records of a micro-batch.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--one-batch", action="store_true", help="Also the tutorial without a limit of a batch."
    )
    parser.add_argument(
        "--flink", type=Path, metavar="FOLDER", help="Also Flink SQL, with the jars in this folder."
    )
    parser.add_argument("--only", choices=(OURS, TUTORIAL, ONE_BATCH, FLINK))
    parser.add_argument("--keep", action="store_true", help="Leave the folder for a look.")
    asked = parser.parse_args()
    names = [OURS, TUTORIAL, *([ONE_BATCH] if asked.one_batch else []), *([FLINK] if asked.flink else [])]
    if asked.only:
        names = [asked.only]
    if asked.flink:
        flink.prepare(asked.flink)
    with scratch_folder("ysb", keep=asked.keep) as folder:
        endpoints = stack.up(folder)
        bench = Bench(folder, endpoints.kafka, endpoints.postgres, asked)
        bench.fill()
        for turn in range(asked.rounds):
            # The order changes from round to round: whoever comes second finds warmer caches.
            for name in names if turn % 2 == 0 else reversed(names):
                run = bench.measure(name, turn)
                print(
                    f"round {turn + 1}  {name:<20} {run.whole:9,.0f} rows/s whole  {run.steady:9,.0f} steady  "
                    f"{run.cpu:6.1f} CPU s per million",
                    flush=True,
                )
        print("\n" + report(bench))


if __name__ == "__main__":
    main()
