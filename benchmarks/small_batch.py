"""CPU of a small batch of the e-commerce example, by thread, however busy the machine is.

    python benchmarks/small_batch.py [--select purchases] [--records 240] [--rounds 3]
    python benchmarks/small_batch.py --with spark.broadcast.blockSize=4m --with min_partitions=4
    python benchmarks/small_batch.py --beside ../of-yesterday --beside ../of-last-week

The topics are filled before the run, and each batch reads the same number of records, so that the CPU of a batch does
not depend on how long the batch before it took. Counted are Python and the JVM from the commit of batch `--warm` to
that of batch `--warm` + `--batches`. Runs take turns with those of other settings and of other versions. Of the names
for `--with`, those that begin with `spark.` go to the spec's `spark:`, other ones to each Kafka source. `--beside`
names the folder of another version's code.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import yaml

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

from measure import TICK, own_ticks, tree_cpu_seconds  # noqa: E402 - found by the line above
from scratch import scratch_folder  # noqa: E402

from acceptance.oracle import STREAMS  # noqa: E402
from acceptance.project import COMMAND, START, adapt, database  # noqa: E402
from millstream.devstack import stack  # noqa: E402
from millstream.devstack.servers.topics import create_topics  # noqa: E402

if TYPE_CHECKING:
    from millstream.devstack.supervisor.state import Endpoints

# Of 240 records, as the example's traffic has them.
SHARES = {"clicks": 0.802, "cart_events": 0.164, "purchases": 0.034}
_NUMBER = re.compile(r"[-#: ]*\d.*")


@dataclass(frozen=True)
class Variant:
    """What is measured: the code in a folder, with settings."""

    code: Path = HERE.parent
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Costs:
    """Costs of one batch in milliseconds: CPU, its parts by thread, and the median of the time from start to end."""

    cpu: float
    threads: dict[str, float]
    """Without threads that ended before the last batch that counts."""
    duration: float


def prepare(place: Path, prefix: str, asked: argparse.Namespace, settings: dict[str, str]) -> None:
    """A copy of the example whose batches read `--records` records, with other settings."""
    shutil.copytree(
        HERE.parent / "examples" / "ecommerce", place, ignore=shutil.ignore_patterns(".millstream", "lake")
    )
    adapt(place, prefix)
    spec = yaml.safe_load((place / "pipeline.yml").read_text())
    spec["defaults"]["trigger"] = "100 ms"
    for name, share in SHARES.items():
        kafka = spec["sources"][name]["kafka"]
        kafka["max_offsets_per_trigger"] = max(4, round(asked.records * share))
        kafka |= {key: int(value) for key, value in settings.items() if not key.startswith("spark.")}
    if conf := {key: value for key, value in settings.items() if key.startswith("spark.")}:
        spec["spark"] = conf
    (place / "pipeline.yml").write_text(yaml.safe_dump(spec, sort_keys=False))


def ticks_by_thread(root: int) -> Counter[str]:
    """CPU ticks of a process and those below it, by the names of their threads without numbers."""
    ticks: Counter[str] = Counter()
    for pid in (root, *own_ticks({root})):
        for task in Path(f"/proc/{pid}/task").iterdir():
            try:
                name, _, rest = (task / "stat").read_text().partition("(")[2].rpartition(")")
            except OSError:
                continue
            program = "Python" if pid == root else "JVM"
            ticks[f"{program}: {_NUMBER.sub('', name)}"] += sum(map(int, rest.split()[11:13]))
    return ticks


def measure(folder: Path, ends: Endpoints, asked: argparse.Namespace, name: str, variant: Variant) -> Costs:
    """Run the query, and return what its batches cost."""
    place, prefix = folder / name, f"{name}_"
    prepare(place, prefix, asked, variant.settings)
    create_topics(ends.kafka, {f"{prefix}{stream}": {} for stream in STREAMS})
    with psycopg.connect(ends.postgres, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {prefix}db")
    env = {
        **os.environ, "KAFKA": ends.kafka, "POSTGRES_URL": database(ends.postgres, f"{prefix}db"),
        "LAKE": str(place / "lake"), "STATE_DIR": str(place / "state"),
        "PYTHONPATH": str(variant.code / "src"), "MILLSTREAM_ARCHIVE": "use",
    }  # fmt: skip
    rows = round(asked.records * (asked.warm + asked.batches + 10))
    with (place / "log").open("wb") as log:
        sent = [COMMAND, "traffic", "--rows", str(rows), "--rate", "50", "--start", START]
        subprocess.run(sent, cwd=place, env=env, stdout=log, stderr=log, check=True)
        command = [COMMAND, "run", "--json", "--no-page", "--select", asked.select]
        running = subprocess.Popen(command, cwd=place, env=env, stdout=subprocess.PIPE, stderr=log)
        try:
            return count_costs(running, asked)
        except EOFError:
            raise SystemExit(
                f"the run ended early:\n{(place / 'log').read_text(errors='replace')[-3000:]}"
            ) from None
        finally:
            running.terminate()
            running.communicate()


def count_costs(running: subprocess.Popen[bytes], asked: argparse.Namespace) -> Costs:
    """Return the costs of the batches that count. Raises EOFError if there are fewer."""
    began: tuple[int, float, Counter[str]] | None = None
    durations: list[float] = []
    for line in running.stdout or ():
        event = json.loads(line)
        if event["event"] != "batch_committed" or event["batch"] < asked.warm:
            continue
        if began is None:
            began = event["batch"], tree_cpu_seconds(running.pid), ticks_by_thread(running.pid)
            continue
        first, cpu, ticks = began
        durations.append(event["duration_ms"]["triggerExecution"])
        if event["batch"] >= first + asked.batches:
            batches = event["batch"] - first
            total = 1000 * (tree_cpu_seconds(running.pid) - cpu) / batches
            ended = ticks_by_thread(running.pid)
            threads = {key: 1000 * (ended[key] - ticks[key]) / TICK / batches for key in ended}
            return Costs(total, threads, statistics.median(durations))
    raise EOFError


def report(name: str, rounds: list[Costs], asked: argparse.Namespace) -> str:
    """The costs of a variant: medians of the rounds, with the least and the most, and the threads that took most."""
    totals, durations = [costs.cpu for costs in rounds], [costs.duration for costs in rounds]
    medians = {
        key: statistics.median(costs.threads.get(key, 0.0) for costs in rounds)
        for key in set().union(*(costs.threads for costs in rounds))
    }
    threads = sorted(medians.items(), key=lambda item: -item[1])[: asked.threads]
    return "\n".join(
        (
            f"\n{name}, {asked.select}, {asked.records} records a batch: {statistics.median(totals):.0f} ms of CPU "
            f"({min(totals):.0f} to {max(totals):.0f}), batch time {statistics.median(durations):.0f} ms "
            f"({min(durations):.0f} to {max(durations):.0f}); load {os.getloadavg()[1]:.1f}",
            *(f"  {cost:7.1f}  {thread}" for thread, cost in threads),
        )
    )


def main() -> None:
    """Start the servers, measure in turn, print the medians."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--select", choices=("funnel", "purchases"), default="funnel")
    parser.add_argument(
        "--records", type=int, default=240, help="Records of a batch, of all topics together."
    )
    parser.add_argument("--warm", type=int, default=20, help="Batches that do not count.")
    parser.add_argument("--batches", type=int, default=20, help="Batches that count.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--with", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--beside", type=Path, action="append", default=[], metavar="FOLDER")
    parser.add_argument("--threads", type=int, default=12, help="Threads to print.")
    asked = parser.parse_args()
    os.environ["MILLSTREAM_EVENTS"] = "1"  # the settings of a real run, not of a short test
    variants = {"as it is": Variant()}
    if asked.settings:
        variants["with settings"] = Variant(settings=dict(text.split("=", 1) for text in asked.settings))
    variants |= {folder.name: Variant(folder.resolve()) for folder in asked.beside}
    measured: dict[str, list[Costs]] = {name: [] for name in variants}
    with scratch_folder("small_batch") as folder:
        ends = stack.up(folder)
        for turn in range(asked.rounds):
            # Every second round goes backwards, so that a machine that becomes slower favours none.
            for number, (name, variant) in list(enumerate(variants.items()))[:: -1 if turn % 2 else 1]:
                costs = measure(folder, ends, asked, f"t{turn}v{number}", variant)
                measured[name].append(costs)
                print(
                    f"round {turn + 1}, {name}: {costs.cpu:.0f} ms of CPU a batch, batch time "
                    f"{costs.duration:.0f} ms",
                    flush=True,
                )
    for name, rounds in measured.items():
        print(report(name, rounds, asked))


if __name__ == "__main__":
    main()
