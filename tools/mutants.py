"""Break the code in small ways, one at a time, and see whether the tests notice.

    python tools/mutants.py map --out build/quick.json -- tests/unit tests/cli tests/pipeline src
    python tools/mutants.py run --map build/quick.json --results build/results.jsonl --number 40 --seed 1
    python tools/mutants.py report --results build/results.jsonl

`map` runs tests and notes which lines each of them reaches, in its own process: what a process that a test starts
reaches is not seen. `run` draws so many mutants of each part of PARTS, runs the tests that reach the line of each,
the shortest first, until one fails, and adds a line to the results. A second `run` continues the first, and one with
another map and `--stage` tries what is still unnoticed. `report` counts, and lists what no test noticed; `show`
prints the change of a mutant.

A mutant turns a comparison, a condition, an `and` or an `or`, a number or a truth value around, or leaves a call or a
`return` out. In one process the tests of many mutants run, each with the code of one function replaced; a mutant
outside functions, and with `--fresh` every mutant, has a process of its own and a copy of `src`, which the processes
that the tests start see too. A test that fails must pass without the mutant, or it does not count.
"""

from __future__ import annotations

import argparse
import difflib
import json
import random
import sys
from collections import Counter
from pathlib import Path

import mutant_run
from mutant_code import ROOT, Mutant, draw_mutants, find_mutants, mutate

_SOURCES = "src/millstream/"
PARTS = {
    "writers": (
        *("connectors/*/writer.py", "connectors/*/ledger.py", "connectors/*/changes.py"),
        *("connectors/api/*.py", "connectors/delta/commit/*.py", "connectors/duckdb/database.py"),
        *("connectors/files/manifest.py", "connectors/files/publish.py", "connectors/files/sink_folder.py"),
        *(
            "connectors/kafka/client/resend.py",
            "connectors/kafka/transactions.py",
            "connectors/postgres/copy/*.py",
        ),
    ),
    "checkpoint": ("checkpoint/**/*.py",),
    "rules": ("analysis/rules/*.py",),
    "delivery and recovery": ("engine/delivery/*.py", "engine/recovery/*.py"),
    "malformed records": (
        *(
            "frames/avro_decode.py",
            "frames/dead_letter_columns.py",
            "frames/decode.py",
            "frames/expectations.py",
        ),
        *(
            "connectors/*/dead_letter*.py",
            "engine/delivery/dead_letters.py",
            "engine/delivery/row_isolation_writer.py",
        ),
        *("engine/recovery/poison_record.py",),
    ),
}


def draw_parts(number: int, seed: int) -> dict[str, Mutant]:
    """So many mutants of each part, by their id; a file of two parts belongs to the last."""
    part_of = {
        file.relative_to(ROOT).as_posix(): part
        for part, patterns in PARTS.items()
        for pattern in patterns
        for file in sorted((ROOT / _SOURCES).glob(pattern))
    }
    mutants = []
    for part in PARTS:
        files = [file for file, owner in part_of.items() if owner == part]
        mutants += draw_mutants(files, number, random.Random(f"{seed} {part}"), part)
    return {mutant.id: mutant for mutant in mutants}


def read_results(file: Path) -> dict[str, list[dict[str, str]]]:
    """The results of each mutant, in order."""
    results: dict[str, list[dict[str, str]]] = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        result = json.loads(line)
        results.setdefault(result["id"], []).append(result)
    return results


def run(args: argparse.Namespace) -> int:
    """Try the mutants that are neither noticed nor tried in this stage."""
    stage = " ".join(args.words) or args.stage + "-fresh" * args.fresh + "-whole" * args.whole
    results = read_results(args.results)
    todo = [
        mutant
        for key, mutant in draw_parts(args.number, args.seed).items()
        if not any(
            item["outcome"] == "noticed" or (item["stage"], item["outcome"]) == (stage, "unnoticed")
            for item in results.get(key, ())
        )
        and (not args.id or key in args.id)
        and args.part in (None, mutant.part)
    ]
    stage_run = mutant_run.StageRun(
        stage, mutant_run.read_maps(args.map), args.results, args.seconds, args.whole, args.words
    )
    print(f"{len(todo)} mutants to try: {stage}", flush=True)
    stage_run.try_all(todo, args.jobs, args.fresh or bool(args.words))
    return 0


def report(args: argparse.Namespace) -> int:
    """Count by part, and list what was not noticed; 1 where a mutant is neither noticed nor equivalent."""
    marks = json.loads(args.marks.read_text(encoding="utf-8")) if args.marks else {}
    results = read_results(args.results)
    counts: Counter[tuple[str, str]] = Counter()
    unnoticed = []
    for key, mutant in draw_parts(args.number, args.seed).items():
        outcomes = {item["outcome"] for item in results.get(key, ())}
        word = (
            "noticed"
            if "noticed" in outcomes
            else "marked"
            if key in marks
            else "unnoticed"
            if outcomes
            else "open"
        )
        counts[mutant.part, word] += 1
        if word != "noticed":
            tried = ", ".join(f"{item['stage']} {item['tests']}" for item in results.get(key, ()))
            unnoticed.append(f"{key}: {word} (tests: {tried or 'none'}) {marks.get(key, '')}".rstrip())
    print(*unnoticed, sep="\n")
    for part in PARTS:
        words = ("noticed", "marked", "unnoticed", "open")
        print(part + ":", ", ".join(f"{counts[part, word]} {word}" for word in words))
    return int(any(word in ("unnoticed", "open") for _, word in counts))


def show(args: argparse.Namespace) -> int:
    """Print what a mutant changes."""
    file = args.id.partition(":")[0]
    text = (ROOT / file).read_text(encoding="utf-8")
    mutant = next(mutant for mutant in find_mutants(file, text) if mutant.id == args.id)
    before, after = (mutate(text, node).splitlines() for node in (-1, mutant.node))
    print(*difflib.unified_diff(before, after, lineterm="", n=args.lines), sep="\n")
    return 0


def main() -> int:
    """Do what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(required=True)
    drawn = argparse.ArgumentParser(add_help=False)
    drawn.add_argument("--results", type=Path, required=True)
    drawn.add_argument("--number", type=int, default=40, help="mutants of each part (40)")
    drawn.add_argument("--seed", type=int, default=1)

    command = commands.add_parser("map")
    command.add_argument("--out", type=Path, required=True)
    command.add_argument("words", nargs="*", help="what pytest is given, after --")
    command.set_defaults(do=lambda args: mutant_run.map_lines(args.out.absolute(), args.words))
    command = commands.add_parser("run", parents=[drawn])
    command.add_argument("--map", type=Path, action="append", required=True, help="of tests; may be repeated")
    command.add_argument("--stage", default="quick", help="the name of these tests in the results (quick)")
    command.add_argument("--jobs", type=int, default=1, help="processes of tests side by side (1)")
    command.add_argument(
        "--seconds", type=float, default=120, help="what the tests of a mutant may take in all (120)"
    )
    command.add_argument("--fresh", action="store_true", help="a process for each mutant")
    command.add_argument(
        "--whole", action="store_true", help="all parameters of the tests, as in whole sweeps"
    )
    command.add_argument("--id", action="append", help="this mutant alone; may be repeated")
    command.add_argument("--part", choices=PARTS, help="the mutants of this part alone")
    command.add_argument(
        "words", nargs="*", help="what pytest is given instead of the tests of the map, after --"
    )
    command.set_defaults(do=run)
    command = commands.add_parser("report", parents=[drawn])
    command.add_argument("--marks", type=Path, help="JSON: why a mutant changes nothing, by its id")
    command.set_defaults(do=report)
    command = commands.add_parser("show")
    command.add_argument("id")
    command.add_argument("--lines", type=int, default=4)
    command.set_defaults(do=show)

    args = parser.parse_args()
    code: int = args.do(args)
    return code


if __name__ == "__main__":
    sys.exit(main())
