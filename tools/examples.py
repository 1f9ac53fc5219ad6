"""Run the examples against one local stack, and hold what they made against their expected.yml.

`make examples` runs all of them in full size. Each is copied to a folder of its own, as `millstream init` copies it,
gets its traffic, is run, and its sinks are read with `millstream show`. Ends with 1 when one of them differs.
`--update` writes the numbers that came into the files; look at the difference before you commit it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from millstream.cli.init import example_names
from trials.stage import staged
from trials.trial import Trial, attempt, declared, update


def main() -> int:
    """Run what is asked for, and print a table."""
    arguments = _arguments()
    unknown = set(arguments.only) - set(example_names())
    if unknown:
        print(f"there is no example {', '.join(sorted(unknown))}; there are {', '.join(example_names())}")
        return 2
    names = [name for name in example_names() if not arguments.only or name in arguments.only]
    silent = [name for name in names if declared(name, arguments.size) is None]
    trials = []
    print(f"{'example':<16}{'first output':>13}  {'rows':<36}  verdict")
    with tempfile.TemporaryDirectory() as scratch, staged(Path(scratch) / "stack") as stage:
        for name in names:
            if name in silent:
                continue
            trial = attempt(name, arguments.size, stage, Path(scratch) / name)
            trials.append(trial)
            print(line(trial), flush=True)
            if arguments.update and trial.rows and update(trial):
                print(f"{'':<16}written to examples/{name}/expected.yml")
    for name in silent:
        print(f"{name:<16}{'':>13}  {'':<36}  expected.yml says nothing of the size '{arguments.size}'")
    # What is written down now is right by definition; a command that failed is not.
    return int(
        any(not trial.good and not (arguments.update and trial.rows) for trial in trials) or bool(silent)
    )


def line(trial: Trial) -> str:
    """An example's line of the table: its verdict, and below it the first thing that differs."""
    first = "none" if trial.first is None else f"{trial.first:.1f} s"
    rows = ", ".join(f"{text} {len(rows):,}" for text, rows in trial.rows.items())
    head = f"{trial.name:<16}{first:>13}  {rows:<36}  {'as expected' if trial.good else 'DIFFERS'}"
    if trial.good:
        return head
    more = f" (and {len(trial.wrong) - 1} more)" if len(trial.wrong) > 1 else ""
    return f"{head}\n{'':<16}{trial.wrong[0]}{more}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="may be given again")
    parser.add_argument("--size", choices=["full", "small"], default="full")
    parser.add_argument("--update", action="store_true", help="write the numbers that came")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
