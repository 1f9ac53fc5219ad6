"""A million users in state: the example user_status beside the same logic in PySpark by hand, in turn.

    python benchmarks/users.py --users 1000000 --rounds 3

    12:00-12:20  each user acts once, in four batches: so many users are in state
    12:40-12:50  every second user acts again, in two batches: their hour begins anew
    13:45        one user more: the watermark stands at 13:35, and the other half is gone

Both read the same Parquet files, a file a batch, and append to a Delta table. Each must tell exactly the users who
are gone, with the time of their hour's end, else there is no figure.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml
from deltalake import DeltaTable

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

from measure import Cost, measure  # noqa: E402

from millstream.spark.jars import jar_cache  # noqa: E402

OURS, BY_HAND = "millstream", "by hand"
COMMAND = str(Path(sys.executable).with_name("millstream"))
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
FIRST, AGAIN = 4, 2


@dataclass(frozen=True)
class Run:
    """What one run cost, and what its batches told."""

    cost: Cost
    batches: list[dict[str, int]]
    disk: int
    """Bytes of the checkpoint's state on disk."""

    @property
    def rate(self) -> float:
        """Rows a second of the time in which batches ran."""
        return sum(batch["rows"] for batch in self.batches) / (
            sum(batch["ms"] for batch in self.batches) / 1000
        )

    @property
    def state_rows(self) -> int:
        return max(batch["state_rows"] for batch in self.batches)

    @property
    def state_bytes(self) -> int:
        return max(batch["state_bytes"] for batch in self.batches)


def user(number: int) -> str:
    return f"u{number:08}"


def acted(number: int, users: int) -> datetime:
    """When a user acted first: spread over twenty minutes, in whole milliseconds."""
    return NOON + timedelta(milliseconds=number * 1_200_000 // users)


def fill(folder: Path, users: int) -> None:
    """The actions, a file a batch."""
    folder.mkdir()
    numbers = range(users)
    size = -(-users // FIRST)
    portions = [
        [(n, "work", acted(n, users)) for n in numbers[at : at + size]] for at in range(0, users, size)
    ]
    even = numbers[::2]
    size = -(-len(even) // AGAIN)
    portions += [
        [
            (n, "pause", NOON + timedelta(minutes=40, milliseconds=n * 600_000 // users))
            for n in even[at : at + size]
        ]
        for at in range(0, len(even), size)
    ]
    portions.append([(users, "sign_in", NOON + timedelta(minutes=105))])
    messages = 0
    for index, rows in enumerate(portions):
        columns = {
            "user_id": [user(number) for number, _, _ in rows],
            "action": [action for _, action, _ in rows],
            "event_time": pa.array([at for _, _, at in rows], pa.timestamp("us", "UTC")),
            "offset": pa.array(range(messages, messages + len(rows)), pa.int64()),
        }
        messages += len(rows)
        pq.write_table(pa.table(columns), folder / f"{index}.parquet")


def project(folder: Path, actions: Path) -> Path:
    """The example, over files and into a plain table; its functions as they are."""
    result = folder / "project"
    shutil.copytree(HERE.parent / "examples" / "user_status", result)
    spec = yaml.safe_load((result / "pipeline.yml").read_text())
    source = spec["sources"]["user_actions"]
    for key in ("kafka", "format", "keep", "on_malformed"):
        del source[key]
    source |= {"parquet": {"path": str(actions), "max_files_per_trigger": 1}, "on_malformed": "fail"}
    source["schema"]["offset"] = "bigint"
    spec["views"] = {"user_status": spec["views"]["user_status"] | {"output_mode": "append"}}
    lake = {"delta": "${LAKE}"}
    spec["queries"] = {"user_status": {"output_mode": "append", "to": lake}}
    spec["spark"] = {
        "spark.master": "local[2]",
        "spark.sql.shuffle.partitions": 2,
        "spark.driver.memory": "4g",
    }
    (result / "pipeline.yml").write_text(yaml.safe_dump(spec, sort_keys=False))
    return result


def millstream_command(place: Path, made: Path) -> tuple[list[str], Path, dict[str, str]]:
    """The command, the checkpoint's folder, and the variables."""
    messages = {"LAKE": str(place / "lake"), "STATE_DIR": str(place / "state")}
    command = [COMMAND, "run", "--until-caught-up", "--json", "--no-page", "-f", str(made)]
    return command, place / "state" / "user_status", messages


def by_hand(place: Path, actions: Path) -> tuple[list[str], Path, dict[str, str]]:
    """As `millstream_command`."""
    locked = ",".join(str(path) for path in jar_cache.ensure_jars("spark"))
    words = [str(actions), str(place / "lake"), str(place / "state"), locked]
    # The workers' Python, which Spark would take from the PATH.
    own = {"PYSPARK_PYTHON": sys.executable}
    return [sys.executable, str(HERE / "users_by_hand.py"), *words], place / "state", own


def batches(log: Path) -> list[dict[str, int]]:
    """What a program told of its batches, in the same words for both."""
    messages = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    if any("event" in item for item in messages):
        messages = [
            {
                "rows": item["rows_in"],
                "ms": item["duration_ms"]["triggerExecution"],
                "state_rows": item["state_rows"],
                "state_bytes": item["state_bytes"],
            }
            for item in messages
            if item["event"] == "batch_committed"
        ]
    return messages


def verify(lake: Path, users: int) -> None:
    """Are exactly those gone who should be, with the end of their hour?"""
    table = DeltaTable(lake).to_pyarrow_table()
    removed_at = {
        row["user_id"]: row["since"].astimezone(UTC)
        for row in table.filter(pc.equal(table["status"], "gone")).to_pylist()
    }
    expected = {user(number): acted(number, users) + timedelta(hours=1) for number in range(1, users, 2)}
    if removed_at != expected:
        error = sorted(set(removed_at.items()) ^ set(expected.items()))[:5]
        raise SystemExit(f"{len(removed_at)} users are gone where {len(expected)} should be, such as {error}")
    changes = users + len(range(0, users, 2)) + 1 + len(expected)
    if table.num_rows != changes:
        raise SystemExit(f"{table.num_rows} rows came where {changes} should")


def run_program(name: str, folder: Path, turn: int, actions: Path, made: Path, users: int) -> Run:
    """One run of one program, from nothing."""
    place = folder / f"{turn}-{name.replace(' ', '-')}"
    place.mkdir()
    command, checkpoint, messages = (
        millstream_command(place, made) if name == OURS else by_hand(place, actions)
    )
    log = place / "log"
    cost = measure(command, log, cwd=place, env={**os.environ, "MILLSTREAM_ARCHIVE": "use", **messages})
    if cost.code:
        raise SystemExit(f"{name} ended with {cost.code}:\n{log.read_text()[-3000:]}")
    verify(place / "lake", users)
    disk = sum(file.stat().st_size for file in (checkpoint / "state").rglob("*") if file.is_file())
    run = Run(cost, batches(log), disk)
    shutil.rmtree(place)
    return run


def report(runs: dict[str, list[Run]], users: int) -> str:
    """The figures as Markdown: the median of the rounds, and the ratio of each pair."""
    lines = [
        f"# {users:,} users in state",
        "",
        "| program | rows/s in batches | wall s | CPU s | rows of state | state in memory, MiB | on disk, MiB "
        "| largest process, MiB |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, several in runs.items():
        figures = [
            f"{statistics.median(run.rate for run in several):,.0f}",
            f"{statistics.median(run.cost.wall for run in several):.1f}",
            f"{statistics.median(run.cost.cpu for run in several):.1f}",
            f"{several[0].state_rows:,}",
            f"{several[0].state_bytes / 2**20:.0f}",
            f"{several[0].disk / 2**20:.0f}",
            f"{statistics.median(run.cost.memory for run in several):.0f}",
        ]
        lines.append(f"| {name} | {' | '.join(figures)} |")
    pairs = list(zip(runs[OURS], runs[BY_HAND], strict=True))
    rates = ", ".join(f"{local.rate / other.rate:.2f}" for local, other in pairs)
    cpu = ", ".join(f"{local.cost.cpu / other.cost.cpu:.2f}" for local, other in pairs)
    return "\n".join([*lines, "", f"{OURS} over {BY_HAND}, by round: rows/s {rates}; CPU {cpu}.", ""])


def main() -> None:
    """Make the actions, measure in turn, report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="Write the report there too.")
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="millstream-users-"))
    runs: dict[str, list[Run]] = {OURS: [], BY_HAND: []}
    try:
        actions = folder / "actions"
        fill(actions, args.users)
        result = project(folder, actions)
        for turn in range(args.rounds):
            # The order changes from round to round: whoever comes second finds warmer caches.
            for name in (OURS, BY_HAND) if turn % 2 == 0 else (BY_HAND, OURS):
                run = run_program(name, folder, turn, actions, result, args.users)
                runs[name].append(run)
                print(
                    f"round {turn + 1}  {name:<12} {run.rate:9,.0f} rows/s  CPU {run.cost.cpu:6.1f} s  "
                    f"wall {run.cost.wall:6.1f} s  {run.state_rows:,} rows of state",
                    flush=True,
                )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    text = report(runs, args.users)
    print(text)
    if args.out:
        args.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
