"""Replay tests of the stateful examples in many batch splits, and print the table of docs/how-to/shuffle.md.

    python tools/shuffles.py [--splits 50] [--seed 6] [--jobs 2] [--only NAME]

`TESTS` has words of the names of the tests, one at least for each query with state. Each is a `millstream test
--shuffle` of its own; 50 splits take one to five minutes. A test that is played for several values is one row.
Ends with 1 when a test could not be replayed or does not end with the batch answer: what it printed is its row then.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
TESTS = {
    "activity": (
        "each activity has its count",
        "a model has the averages",
        "without a watermark a reading is never too late",
        "dropped once its window has ended",
        "a reading that comes again",
        "what a person does",
    ),
    "ad_ctr": (
        "an alert is above five percent",
        "an impression that is too late",
        "deliveries that come again",
        "comes out when none can come any more",
    ),
    "cdc_orders": ("the latest state", "a late version splits"),
    "clickstream": ("most frequent action, by windows", "a window is written once", "a visit lasts"),
    "dedup": ("an event that is late by more", "of each event one attempt"),
    "ecommerce": ("a click that is late by more", "a click that is delivered twice", "recorded purchases"),
    "multi_sink": ("an event that is delivered twice", "a purchase of more than 99"),
    "order_matching": ("a payment that is delivered twice", "an order without a payment"),
    "sensors": (
        "all readings are counted",
        "several aggregates",
        "more than one reading",
        "windows that overlap",
        "one wild value",
    ),
    "starter": ("half a minute of ticks",),
    "table_stream": ("an event that is in the table twice",),
    "user_events": ("late by more than three minutes", "an event that is delivered twice"),
    "user_status": (
        "by the time of the actions",
        "actions are counted on from",
        "an alert comes for two changes",
    ),
    "word_count": ("complete mode gives every word",),
}
COLUMNS = ("example", "test", "splits", "seconds", "rows too late in some")


def main() -> int:
    """Replay what is asked for; each row is printed when it is there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--splits", type=int, default=50)
    parser.add_argument("--seed", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=2, help="so many at a time; each has a JVM")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="may be given again")
    args = parser.parse_args()
    if unknown := set(args.only) - set(TESTS):
        print(f"no tests are named for {', '.join(sorted(unknown))}; there are {', '.join(TESTS)}")
        return 2
    requests = [
        (name, words) for name in TESTS if not args.only or name in args.only for words in TESTS[name]
    ]
    print(f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}", flush=True)
    error = 0
    with ThreadPoolExecutor(args.jobs) as pool:
        messages = pool.map(lambda item: replay(item[0], item[1], args.splits, args.seed), requests)
        for (name, words), (tests, output) in zip(requests, messages, strict=True):
            if tests and all(test["outcome"] == "passed" for test in tests):
                print(*rows(name, tests), sep="\n", flush=True)
            else:
                error += 1
                print(f"{name}, -k {words!r}:\n{output}", flush=True)
    return int(error > 0)


def replay(name: str, words: str, splits: int, seed: int) -> tuple[list[dict[str, Any]], str]:
    """What `--json` tells of each test of these words, and all that was printed; none where it tells of none."""
    command = [
        str(Path(sys.executable).with_name("millstream")),
        "test",
        f"examples/{name}/tests",
        "-k",
        words,
    ]
    command += ["--shuffle", str(splits), "--seed", str(seed), "--json"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    try:
        return json.loads(result.stdout)["tests"], result.stdout + result.stderr
    except ValueError:
        return [], result.stdout + result.stderr


def rows(name: str, tests: list[dict[str, Any]]) -> list[str]:
    """Rows of the table: one a test, though it is played for several values."""
    actual: dict[str, list[dict[str, Any]]] = {}
    for test in tests:
        actual.setdefault(test["name"].partition(" [")[0], []).append(test)
    return [row(name, title, values) for title, values in actual.items()]


def row(name: str, title: str, tests: list[dict[str, Any]]) -> str:
    """One row, of a test and all its values."""
    splits = " and ".join(str(test["shuffle"]["splits"]) for test in tests)
    late = sum(len(test["shuffle"]["dropped"]) for test in tests)
    cells = (f"`{name}`", title, splits, f"{sum(test['seconds'] for test in tests):.0f}", late or "")
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    sys.exit(main())
