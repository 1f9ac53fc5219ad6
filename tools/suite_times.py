"""Where the time of the tests goes: run them, or read a recorded run, and report by folder, file and fixture.

    python tools/suite_times.py -- -n 2 --dist loadfile tests/kafka
    python tools/suite_times.py --read suite.jsonl

Seconds are those of a clock and add up to the number of workers times the length of the run. CPU seconds are those of
the worker and of every process that it started.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

from suite_record import VARIABLE

ROOT = Path(__file__).parent.parent


@dataclass
class Spent:
    """What some tests took together."""

    tests: int = 0
    seconds: float = 0.0
    cpu: float = 0.0

    def add(self, line: dict[str, Any], tests: int) -> None:
        """Add what a line says."""
        self.tests += tests
        self.seconds += line["s"]
        self.cpu += line.get("cpu", 0.0)


def folder_of(test: str) -> str:
    """The folder of a test, two levels below the root: `tests/spark/engine`."""
    return "/".join(test.partition("::")[0].split("/")[:-1][:3])


def report(lines: Iterable[dict[str, Any]], most: int) -> list[str]:
    """The lines of a report; of files and fixtures the `most` that take longest."""
    everything = list(lines)
    tests = [line for line in everything if "id" in line]
    files: dict[str, Spent] = defaultdict(Spent)
    folders: dict[str, Spent] = defaultdict(Spent)
    fixtures: dict[str, Spent] = defaultdict(Spent)
    for line in tests:
        called = int(line["when"] == "call")
        files[line["id"].partition("::")[0]].add(line, called)
        folders[folder_of(line["id"])].add(line, called)
    for line in everything:
        if "fixture" in line:
            fixtures[f"{line['fixture']} ({line['scope']}) of {line['base'] or 'all'}"].add(line, 1)
    outcomes = Counter(
        line["outcome"] for line in tests if line["when"] == "call" or line["outcome"] != "passed"
    )
    started = Counter(line["started"] for line in everything if "started" in line)
    all_of_it = Spent(
        sum(file.tests for file in files.values()),
        sum(file.seconds for file in files.values()),
        sum(file.cpu for file in files.values()),
    )
    loads = sorted(line["load"] for line in tests) or [0.0]
    times = [line["at"] for line in everything] or [0.0]
    return [
        f"{all_of_it.tests} tests, {all_of_it.seconds:,.0f} s of workers, {all_of_it.cpu:,.0f} s of CPU, "
        f"{max(times) - min(times):,.0f} s by the clock, load average {loads[len(loads) // 2]:.1f}",
        "outcomes: " + ", ".join(f"{number} {outcome}" for outcome, number in outcomes.most_common()),
        "started: " + (", ".join(f"{number} {kind}" for kind, number in started.most_common()) or "nothing"),
        *_table("folder", folders, len(folders)),
        *_table("file", files, most),
        *_table("fixture", fixtures, most),
    ]


def _table(title: str, spent: dict[str, Spent], most: int) -> list[str]:
    rank: Callable[[str], float] = lambda name: -max(spent[name].seconds, spent[name].cpu)  # noqa: E731 - a key
    head = ["", f"{'seconds':>9}{'CPU':>9}{'times':>7}  {title}"]
    return head + [
        f"{spent[name].seconds:9,.1f}{spent[name].cpu:9,.1f}{spent[name].tests:7}  {name}"
        for name in sorted(spent, key=rank)[:most]
    ]


def run(words: list[str], record: Path) -> int:
    """Run pytest with these words, and record it."""
    path = os.pathsep.join([str(ROOT / "tools"), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, "PYTHONPATH": path, VARIABLE: str(record)}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "suite_record", *words], cwd=ROOT, env=env, check=False
    ).returncode


def main() -> int:
    """Run or read, then report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--read", type=Path, metavar="FILE", help="report a recorded run")
    parser.add_argument("--record", type=Path, metavar="FILE", help="keep the record here")
    parser.add_argument("--most", type=int, default=25, help="so many files and fixtures (25)")
    parser.add_argument("words", nargs="*", help="what pytest is given, after --")
    args = parser.parse_args()
    record = args.read or args.record or Path(tempfile.mkdtemp()) / "suite.jsonl"
    code = 0 if args.read else run(args.words, record.absolute())
    lines = (json.loads(line) for line in record.read_text(encoding="utf-8").splitlines())
    print("\n".join(report(lines, args.most)))
    print(f"\nrecorded in {record}")
    return code


if __name__ == "__main__":
    sys.exit(main())
