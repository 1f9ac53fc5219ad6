"""How throughput and CPU grow with the worker processes of a Spark cluster, for the e-commerce example and Yahoo's.

    python benchmarks/workers.py --events 20000 --workers 1 2 4

A cluster of the local stack for each number of workers, of one core and one executor each. The work of a core is
the same in each: topics have so many `--events` for each worker, which each program reads from nothing until it has
caught up. More workers than the machine has cores share those, so that only the CPU of a row can be compared.

`rows/s` is by the clock of the whole process, with its start. The CPU is user and system seconds for a million rows:
of the driver's processes, and of the processes below the workers, read every fifth of a second. By hand is
`ecommerce/handwritten.py`, as an expert writes it, and `ysb/tutorial.py`, with Spark's defaults. A program with other
results than those of the generator has no figures.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "ysb"), str(HERE.parent / "tests")]

from ecommerce import compare as ecommerce  # noqa: E402 - found by the line above
from measure import TICK, own_ticks  # noqa: E402
from scratch import scratch_folder  # noqa: E402
from ysb import compare as ysb  # noqa: E402

from cluster.orders import put_on_cluster  # noqa: E402
from millstream.devstack import stack  # noqa: E402
from millstream.devstack.servers.spark_cluster import ClusterSize  # noqa: E402
from millstream.devstack.supervisor.state import Home  # noqa: E402
from millstream.spark import resources  # noqa: E402
from millstream.spark.settings import read_secret  # noqa: E402

if TYPE_CHECKING:
    from types import TracebackType

    from millstream.devstack.supervisor.state import Endpoints

OURS = ecommerce.OURS
_INTERVAL = 0.2


class ExecutorCpu:
    """Reads what the processes below the workers use, while a program runs."""

    def __init__(self, workers: set[int]) -> None:
        self._workers, self._before = workers, own_ticks(workers)
        self._ticks: dict[int, int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> ExecutorCpu:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def seconds(self) -> float:
        """User and system seconds."""
        return sum(ticks - self._before.get(pid, 0) for pid, ticks in self._ticks.items()) / TICK

    def _read(self) -> None:
        while not self._ended.wait(_INTERVAL):
            self._ticks |= own_ticks(self._workers)


class Ecommerce(ecommerce.Bench):
    """The example's programs on a cluster."""

    rival = ecommerce.EXPERT
    conf: Path
    endpoints: Endpoints

    def fill(self, events: int) -> None:
        """Make the project, put it on the cluster, and produce."""
        super().fill(events)
        put_on_cluster(self.project, self.endpoints, **{"spark.master": self.endpoints.spark})

    def _command(self, name: str, place: Path, url: str) -> list[str]:
        command = super()._command(name, place, url)
        return command if name == ecommerce.OURS else _with_settings(self.conf, command)


class Yahoo(ysb.Bench):
    """The programs of Yahoo's benchmark on a cluster."""

    rival = ysb.TUTORIAL
    conf: Path
    endpoints: Endpoints

    def _write_spec(self, place: Path) -> None:
        super()._write_spec(place)
        put_on_cluster(place, self.endpoints, **{"spark.master": self.endpoints.spark})

    def _command(self, name: str, place: Path, url: str) -> list[str]:
        command = super()._command(name, place, url)
        if name == ysb.OURS:
            return command
        return _with_settings(self.conf, [*command, f"--master={self.endpoints.spark}"])


def _with_settings(conf: Path, command: list[str]) -> list[str]:
    return ["env", f"SPARK_CONF_DIR={conf}", "SPARK_LOCAL_IP=127.0.0.1", *command]


def _write_settings(folder: Path, endpoints: Endpoints) -> Path:
    """Write what a program by hand needs to use the cluster, with the secret; return the folder."""
    conf = folder / "conf"
    conf.mkdir(mode=0o700)
    settings = {"spark.master": endpoints.spark, **stack.cluster_settings(endpoints.folder, endpoints.spark)}
    lines = [f"{key} {value}\n" for key, value in read_secret(settings).items()]
    (conf / "spark-defaults.conf").write_text("".join(lines), encoding="utf-8")
    return conf


def _measure(
    bench: Ecommerce | Yahoo, name: str, turn: int, workers: set[int], events: int
) -> tuple[float, float, float]:
    """Run one program, and return rows per second, and CPU seconds per million rows of driver and executors."""
    with ExecutorCpu(workers) as executors:
        figures = bench.measure(name, turn)
    million = events / 1e6
    if isinstance(figures, ysb.Figures):
        return figures.whole, figures.cpu, executors.seconds / million
    return events / figures.wall, figures.cpu / million, executors.seconds / million


def measure_cluster(workers: int, asked: Namespace) -> None:
    """Measure the programs on a cluster with so many workers, and print a line of the table for each."""
    events = asked.events * workers
    for kind in asked.programs:
        with scratch_folder(f"workers-{kind}") as folder:
            size = ClusterSize(workers=workers, cores=1, memory=asked.memory)
            endpoints = stack.up(folder, cluster=size)
            conf = _write_settings(folder, endpoints)
            state = Home(folder).state()
            assert state is not None
            servers = {name: server.process.pid for name, server in state.servers.items() if server.process}
            pids = {pid for name, pid in servers.items() if name.startswith("spark-worker")}
            bench: Ecommerce | Yahoo
            if kind == "ecommerce":
                bench = Ecommerce(folder, endpoints.kafka, endpoints.postgres, endpoints.spark, workers)
                bench.conf, bench.endpoints = conf, endpoints
                bench.fill(events)
            else:
                words = Namespace(events=events, batch=asked.batch, seed=1, flink=None)
                bench = Yahoo(folder, endpoints.kafka, endpoints.postgres, words)
                bench.conf, bench.endpoints = conf, endpoints
                bench.fill()
            for turn in range(asked.rounds):
                names = (OURS, bench.rival) if turn % 2 == 0 else (bench.rival, OURS)
                figures = {name: _measure(bench, name, turn, pids, events) for name in names}
                ratio = sum(figures[OURS][1:]) / sum(figures[bench.rival][1:])
                for name, (rate, driver, executors) in figures.items():
                    cells = [
                        kind,
                        workers,
                        f"{events:,}",
                        name,
                        *(f"{x:,.0f}" for x in (rate, driver, executors)),
                    ]
                    compared = f"{ratio:.2f}" if name == OURS else ""
                    print(f"| {' | '.join(map(str, cells))} | {compared} |", flush=True)


def main() -> None:
    """Measure each number of workers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=20_000, help="For each worker.")
    parser.add_argument(
        "--batch", type=int, default=10_000, help="Most records of a batch of Yahoo's benchmark."
    )
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--memory", type=int, default=1024, help="MiB of each worker's executor.")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--programs", nargs="+", choices=("ecommerce", "ysb"), default=["ecommerce", "ysb"])
    asked = parser.parse_args()
    print(f"{resources.available_cores()} cores, load average {os.getloadavg()[0]:.1f} before")
    print(
        "\n| program | workers | events | by | rows/s | CPU driver | CPU executors | CPU millstream / by hand |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    for workers in asked.workers:
        measure_cluster(workers, asked)
    print(f"\nload average {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    main()
