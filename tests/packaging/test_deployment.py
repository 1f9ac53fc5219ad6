"""A package on a machine that has its lock's packages and Java: no Millstream, no jars, no network."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pytest

from acceptance.project import Running, until
from packages import Unpacked, isolation, unpack

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.whole, pytest.mark.timeout(900)]

# The end of a run after a signal: its batch, which is small, Spark's end and that of the JVM, on a loaded machine.
GRACE = 120.0

SPEC = """\
name: orders
sources:
  orders:
    json: {path: "${ORDERS}", max_files_per_trigger: 1}
    schema: {id: bigint, amount: double}
views:
  priced: {python: "transforms:priced"}
  large: SELECT * FROM priced WHERE gross > 5
queries:
  large:
    trigger: 1 second
    to: {parquet: {path: lake/large}}
"""
TRANSFORMS = """\
import pandas as pd
from pyspark.sql import DataFrame, functions as F
from rates import RATE

@F.pandas_udf("double")
def gross(amount: pd.Series) -> pd.Series:
    return amount * RATE

def priced(orders: DataFrame) -> DataFrame:
    return orders.withColumn("gross", gross("amount"))
"""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Unpacked:
    folder = tmp_path_factory.mktemp("deployment")
    project = folder / "project"
    project.mkdir()
    (project / "pipeline.yml").write_text(SPEC)
    (project / "transforms.py").write_text(TRANSFORMS)
    (project / "rates.py").write_text("RATE = 1.25\n")
    return unpack(project, folder)


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    folder = tmp_path / "orders"
    folder.mkdir()
    for number in range(3):
        rows = [{"id": number * 10 + id_, "amount": id_} for id_ in range(10)]
        (folder / f"{number}.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return folder


@pytest.fixture
def processes() -> Iterator[list[Running]]:
    """Processes that a test starts; those that it leaves running are killed."""
    started: list[Running] = []
    yield started
    for process in started:
        if process.process.poll() is None:
            process.kill()


def start(unpacked: Unpacked, folder: Path, *words: str, network: bool, **env: str) -> Running:
    out, err = folder / "out", folder / "err"
    command = [*isolation(network=network), str(unpacked.python), str(unpacked.folder / "main.py"), *words]
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen(
            command, cwd="/", env=unpacked.env(**env), stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
            start_new_session=True,
        )  # fmt: skip
    return Running(process, out, err)


def first_process(running: Running) -> int:
    """The process that is the first one of its namespace, by its number here."""
    children = Path(f"/proc/{running.process.pid}/task/{running.process.pid}/children")
    inside = children.read_text().split()
    return int(inside[0]) if isolation(network=False) else running.process.pid


def status(address: str) -> int:
    try:
        with urllib.request.urlopen(address, timeout=20) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_a_package_without_network_commits_the_rows_of_its_pipeline(
    unpacked: Unpacked, orders: Path, tmp_path: Path, processes: list[Running]
) -> None:
    command = [unpacked.python, "-c", "import millstream"]
    attempt = subprocess.run(command, env=unpacked.env(), check=False, capture_output=True)
    assert b"No module named 'millstream'" in attempt.stderr

    words = ("run", "--until-caught-up", "--json", "--no-page")
    running = start(unpacked, tmp_path, *words, network=True, ORDERS=str(orders))
    processes.append(running)

    assert running.ends(600) == 0, running.words()
    ids = ds.dataset(str(unpacked.project / "lake" / "large"), format="parquet").to_table()["id"].to_pylist()
    assert sorted(ids) == [number * 10 + id_ for number in range(3) for id_ in range(5, 10)]
    assert sum(event["rows_in"] for event in running.list_events("batch_committed")) == 30
    home = unpacked.folder.parent / "home"
    assert list(home.rglob("*.jar")) == []


def test_the_first_process_of_a_container_is_probed_and_ends_gracefully_on_sigterm(
    unpacked: Unpacked, orders: Path, tmp_path: Path, processes: list[Running]
) -> None:
    words = ("run", "--json", "--host", "0.0.0.0", "--port", "0")
    running = start(
        unpacked, tmp_path, *words, "--set", "queries.large.to.parquet.path=lake/stopped",
        "--set", "defaults.checkpoints=state/stopped", network=False, ORDERS=str(orders),
    )  # fmt: skip
    processes.append(running)
    address = until(lambda: re.search(r"http://0\.0\.0\.0:(\d+)/", running.words()), 300, "no page")
    page = f"http://127.0.0.1:{address[1]}"
    assert status(f"{page}/healthz") == 200
    running.await_event("batch_committed", 3, seconds=600)
    assert status(f"{page}/readyz") == 200
    assert status(f"{page}/metrics") == 401

    os.kill(first_process(running), signal.SIGTERM)

    assert running.ends(GRACE) == 0, running.words()
    assert [event["exit_code"] for event in running.list_events("run_stopped")] == [0]
    checkpoint = unpacked.project / "state" / "stopped" / "large"
    batches = {path.name for path in (checkpoint / "offsets").iterdir() if path.name.isdigit()}
    assert {path.name for path in (checkpoint / "commits").iterdir() if path.name.isdigit()} == batches
