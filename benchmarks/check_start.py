"""How long a declarative-pipelines project waits for its verdict from a cold start: `check` beside Spark's dry run.

    python benchmarks/check_start.py --rounds 5 --dry-run-python VENV/bin/python

`spark-pipelines` needs Spark Connect's packages, which Millstream does not: VENV is an environment of its own, made
by `python -m venv VENV` and `VENV/bin/pip install 'pyspark[pipelines]==4.2.0'`. Both commands look at the same
project (one Python source, five datasets in SQL, one of them an aggregation without a watermark), in turn, with
nothing else running; the first turn is not counted. `check` is measured with its class-data archive, as any start
after the first has it, and without.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from measure import measure  # noqa: E402 - found by the line above

from millstream.spark import resources  # noqa: E402

PROJECT = HERE.parent / "tests" / "scripts" / "projects" / "sql"
COMMAND = str(Path(sys.executable).with_name("millstream"))
WITHOUT, WITH, DRY = "check, without the archive", "check, with the archive", "spark-pipelines dry-run"


def home(python: str) -> Path:
    """Where PySpark is in an environment."""
    result = subprocess.run(
        [python, "-c", "import pyspark; print(pyspark.__path__[0])"],
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(result.stdout.strip())


def turns(folder: Path, python: str, rounds: int) -> dict[str, list[float]]:
    """Seconds on the clock of each command, the commands in turn."""
    shutil.copytree(PROJECT, folder / "project")
    spec = folder / "project" / "spark-pipeline.yml"
    spec.write_text(spec.read_text().replace("file:///lake", folder.as_uri()))
    spark = home(python)
    dry = {
        **os.environ,
        "SPARK_HOME": str(spark),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "PATH": f"{Path(python).parent}:{os.environ['PATH']}",
    }
    commands = {
        WITHOUT: ([COMMAND, "check", str(folder / "project")], {**os.environ, "MILLSTREAM_ARCHIVE": "off"}),
        WITH: ([COMMAND, "check", str(folder / "project")], {**os.environ, "MILLSTREAM_ARCHIVE": "use"}),
        DRY: ([str(spark / "bin" / "spark-pipelines"), "dry-run", "--spec", str(spec)], dry),
    }
    actual: dict[str, list[float]] = {name: [] for name in commands}
    codes: dict[str, int] = {}
    for turn in range(rounds + 1):
        for name, (command, env) in commands.items():
            cost = measure(command, folder / "log", cwd=folder / "project", env=env)
            codes[name] = cost.code
            if turn:
                actual[name].append(cost.wall)
    print(f"exit codes: {', '.join(f'{name}: {code}' for name, code in codes.items())}\n")
    return actual


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--dry-run-python", required=True, help="Python of an environment with pyspark[pipelines]"
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="millstream-check-start-") as name:
        # Not resolved: the link itself is what makes it the environment's Python.
        actual = turns(Path(name), str(Path(args.dry_run_python).absolute()), args.rounds)
    slowest = statistics.median(actual[DRY])
    print(f"{args.rounds} rounds on {resources.available_cores()} cores\n")
    print(
        "| what | min s | median s | max s | dry run takes times as long |\n| --- | --- | --- | --- | --- |"
    )
    for what, values in actual.items():
        middle = statistics.median(values)
        figures = " | ".join(f"{item:.1f}" for item in (min(values), middle, max(values)))
        print(f"| {what} | {figures} | {slowest / middle:.1f} |")


if __name__ == "__main__":
    main()
