"""What a whole run of the e-commerce pipeline costs beside the same program written by hand.

    python benchmarks/ecommerce/compare.py --events 1000000 --rounds 3 --out benchmarks/ecommerce/report.md

Fills fresh topics once, then lets the programs catch up in turn, each with an empty lake, state and database.
Both must give the tables that the journal of what was produced demands, else there is no figure.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "tests")]

from measure import Cost, measure  # noqa: E402
from scratch import scratch_folder  # noqa: E402

from acceptance import tables  # noqa: E402 - found by the line above
from acceptance.oracle import STREAMS, Tables, difference, expected  # noqa: E402
from acceptance.project import COMMAND, START, adapt, database  # noqa: E402
from millstream.devstack import stack  # noqa: E402
from millstream.devstack.servers.topics import create_topics  # noqa: E402
from millstream.spark import resources  # noqa: E402
from millstream.spark.jars import jar_cache  # noqa: E402

OURS, EXPERT, NAIVE = "millstream", "by hand", "by hand, naive"


@dataclass
class Bench:
    """The servers, the project and what was measured."""

    folder: Path
    kafka: str
    postgres: str
    master: str = "local[*]"
    partitions: int = 2
    wanted: Tables | None = None
    costs: dict[str, list[Cost]] = field(default_factory=dict)

    @property
    def project(self) -> Path:
        return self.folder / "ecommerce"

    def environment(self, place: Path, url: str) -> dict[str, str]:
        actual = {
            "KAFKA": self.kafka,
            "POSTGRES_URL": url,
            "LAKE": str(place / "lake"),
            "STATE_DIR": str(place / "state"),
            "MILLSTREAM_ARCHIVE": os.environ.get("MILLSTREAM_ARCHIVE", "use"),
        }
        return {**os.environ, **actual}

    def fill(self, events: int) -> None:
        """Make the project and produce."""
        shutil.copytree(
            HERE.parents[1] / "examples" / "ecommerce",
            self.project,
            ignore=shutil.ignore_patterns(".millstream", "lake"),
        )
        os.environ["MILLSTREAM_EVENTS"] = str(events)  # the settings of a real run, not of a short test
        adapt(self.project, "")
        create_topics(self.kafka, {stream: {} for stream in STREAMS})
        journal = self.folder / "journal.jsonl"
        sending = ["traffic", "--rows", str(events), "--start", START, "--journal", str(journal)]
        cost = measure(
            [COMMAND, *sending],
            self.folder / "traffic.log",
            cwd=self.project,
            env=self.environment(self.folder, ""),
        )
        if cost.code:
            raise SystemExit((self.folder / "traffic.log").read_text())
        self.wanted = expected([journal], self.kafka, self.project / "data" / "product_catalog")

    def measure(self, name: str, turn: int) -> Cost:
        """One run of one program, from nothing."""
        place = self.folder / f"{turn}-{name.replace(', ', '-').replace(' ', '-')}"
        place.mkdir()
        base = f"bench{turn}_{abs(hash(name)) % 10_000}"
        with psycopg.connect(self.postgres, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {base}")
        url = database(self.postgres, base)
        log = place / "log"
        cost = measure(
            self._command(name, place, url), log, cwd=self.project, env=self.environment(place, url)
        )
        if cost.code:
            raise SystemExit(f"{name} ended with {cost.code}:\n{log.read_text()[-3000:]}")
        self._verify(name, place, url)
        self.costs.setdefault(name, []).append(cost)
        return cost

    def _command(self, name: str, place: Path, url: str) -> list[str]:
        if name == OURS:
            master = [] if self.master == "local[*]" else ["--master", self.master]
            return [COMMAND, "run", "--until-caught-up", "--json", *master]
        locked = ",".join(str(path) for path in jar_cache.ensure_jars("spark"))
        words = {
            "kafka": self.kafka, "postgres": url, "lake": place / "lake", "state": place / "state",
            "catalog": self.project / "data" / "product_catalog", "jars": locked,
            "master": self.master, "partitions": self.partitions,
        }  # fmt: skip
        item = [word for key, value in words.items() for word in (f"--{key}", str(value))]
        return [sys.executable, str(HERE / "handwritten.py"), *item, *(["--naive"] if name == NAIVE else [])]

    def _verify(self, name: str, place: Path, url: str) -> None:
        """Are the tables right? A program that is fast and wrong has no figures."""
        assert self.wanted is not None
        lake = place / "lake"
        messages = (
            difference(self.wanted.funnel, tables.funnel(lake / "funnel"), "funnel"),
            difference(self.wanted.purchases, tables.parquet(lake / "purchases"), "purchases in Parquet"),
            difference(self.wanted.purchases, tables.postgres(url), "purchases in Postgres"),
        )
        if error := "\n".join(text for text in messages if text):
            raise SystemExit(f"{name} gave other tables than it should:\n{error}")


def report(bench: Bench, events: int) -> str:
    """The figures as Markdown."""
    lines = [
        "# The e-commerce pipeline beside the same program by hand",
        "",
        f"{events:,} events in three topics of four partitions, 5 % of them delivered twice, 1 % malformed; "
        f"each run from nothing until it has caught up; {resources.available_cores()} cores. CPU is "
        "user and system time "
        "of the process and all its descendants, without the broker and Postgres. Made by "
        "`python benchmarks/ecommerce/compare.py`.",
        "",
        "| program | CPU s, min | median | max | wall s, min | median | max | memory of the JVM, MiB |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, costs in bench.costs.items():
        figures = [*_spread([cost.cpu for cost in costs]), *_spread([cost.wall for cost in costs])]
        memory = f"{statistics.median(cost.memory for cost in costs):.0f}"
        lines.append(f"| {name} | {' | '.join(figures)} | {memory} |")
    actual = bench.costs[OURS]
    for other in (name for name in bench.costs if name != OURS):
        pairs = list(zip(actual, bench.costs[other], strict=True))
        cpu = [item.cpu / two.cpu for item, two in pairs]
        wall = [item.wall / two.wall for item, two in pairs]
        lines += [
            "",
            f"{OURS} over {other}, per round: CPU {', '.join(f'{ratio:.2f}' for ratio in cpu)} "
            f"(median {statistics.median(cpu):.2f}); wall {', '.join(f'{ratio:.2f}' for ratio in wall)} "
            f"(median {statistics.median(wall):.2f}).",
        ]
    return "\n".join(lines) + "\n"


def _spread(values: list[float]) -> list[str]:
    return [f"{value:.1f}" for value in (min(values), statistics.median(values), max(values))]


def main() -> None:
    """Start the servers, fill the topics, measure in turn, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--naive", action="store_true", help="Measure the tutorial's version as well.")
    parser.add_argument("--only", choices=(OURS, EXPERT, NAIVE), help="Measure one program only.")
    parser.add_argument("--keep", action="store_true", help="Leave the folder for a look.")
    parser.add_argument("--out", type=Path, help="Write the report there too.")
    args = parser.parse_args()
    names = [args.only] if args.only else [OURS, EXPERT, *([NAIVE] if args.naive else [])]
    with scratch_folder("bench", keep=args.keep) as folder:
        endpoints = stack.up(folder)
        bench = Bench(folder, endpoints.kafka, endpoints.postgres)
        bench.fill(args.events)
        for turn in range(args.rounds):
            # The order changes from round to round: whoever comes second finds warmer caches.
            for name in names if turn % 2 == 0 else reversed(names):
                cost = bench.measure(name, turn)
                print(
                    f"round {turn + 1}  {name:<15} CPU {cost.cpu:6.1f} s  wall {cost.wall:6.1f} s", flush=True
                )
    if OURS in bench.costs:
        text = report(bench, args.events)
        print(text)
        if args.out:
            args.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
