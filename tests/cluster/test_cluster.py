"""A spec on a Spark master and two workers: code reaches them, and nothing is lost with a worker or the driver."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import sys
import sysconfig
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pyarrow.dataset as ds
import pytest
from confluent_kafka import Consumer
from deltalake import DeltaTable

from cluster.interruptions import run_with_kills_of_a_worker_and_the_driver
from cluster.orders import SIZE, put_on_cluster, send_orders
from millstream.devstack import stack
from millstream.devstack.servers.spark_cluster import SERVERS
from millstream.devstack.supervisor.state import Home

if TYPE_CHECKING:
    from acceptance.project import Project
    from millstream.devstack.supervisor.state import Endpoints

ORDERS = 1200


def read_committed(kafka: str, topic: str) -> Counter[int]:
    """How often each order stands in a topic, for a reader of committed records."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka, "group.id": "reader", "auto.offset.reset": "earliest",
            "isolation.level": "read_committed", "enable.partition.eof": True,
        }
    )  # fmt: skip
    partitions = len(consumer.list_topics(topic, timeout=60).topics[topic].partitions)
    consumer.subscribe([topic])
    found: Counter[int] = Counter()
    ended: set[int] = set()
    while len(ended) < partitions:
        message = consumer.poll(60)
        assert message is not None, "the broker is silent"
        if message.error():
            ended.add(message.partition())
        else:
            found[json.loads(message.value())["id"]] += 1
    consumer.close()
    return found


def make_python_without(folder: Path, *packages: str) -> Path:
    """A Python with the packages of this one but these, as a worker has it on which they were not installed."""
    here = Path(sysconfig.get_path("purelib"))
    site = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    site.mkdir(parents=True)
    for path in here.iterdir():
        if not path.name.lower().lstrip("_").startswith(packages):
            (site / path.name).symlink_to(path)
    (folder / "pyvenv.cfg").write_text(f"home = {Path(sys.base_prefix) / 'bin'}\n")
    python = folder / "bin" / "python"
    python.parent.mkdir()
    python.symlink_to(Path(sys.executable).resolve())
    return python


def shift_clock(python: Path, seconds: int) -> None:
    """Let a Python of `make_python_without` tell a later time than the machine's."""
    (site,) = python.parents[1].glob("lib/*/site-packages")
    # Python runs a line of a .pth file that begins with "import" when it starts, perhaps twice.
    (site / "clock.pth").write_text(f"import time; time.time = lambda now=time.time: now() + {seconds}\n")


def assert_all_sinks_have(shop: Project, table: str, orders: int) -> None:
    """Each order once in each sink, and each user's total."""
    everything = Counter(range(orders))
    with psycopg.connect(shop.postgres) as connection:
        rows = connection.execute(f'SELECT id, gross FROM "{table}"').fetchall()
    files = ds.dataset(str(shop.lake / "priced"), format="parquet").to_table(columns=["id"])
    totals = DeltaTable(str(shop.lake / "totals")).to_pyarrow_table().to_pylist()

    assert Counter(row[0] for row in rows) == everything
    assert all(gross == number * 1.25 for number, gross in rows)
    assert Counter(files["id"].to_pylist()) == everything
    assert read_committed(shop.kafka, f"{shop.prefix}priced") == everything
    assert {row["user"]: row["orders"] for row in totals} == Counter(
        f"u{number % 7}" for number in range(orders)
    )


@pytest.mark.timeout(600)
@pytest.mark.kills(2)
def test_every_row_arrives_once_although_a_worker_and_then_the_driver_are_killed(
    shop: Project, cluster: Endpoints
) -> None:
    send_orders(shop.kafka, f"{shop.prefix}orders", range(ORDERS))

    run_with_kills_of_a_worker_and_the_driver(shop, cluster, PREFIX=shop.prefix, TABLE="killed")

    assert_all_sinks_have(shop, "killed", ORDERS)


@pytest.mark.whole
@pytest.mark.timeout(600)
def test_a_python_that_lacks_packages_and_a_folder_that_is_not_shared_are_said_before_the_first_batch(
    shop: Project, cluster: Endpoints, tmp_path: Path
) -> None:
    python = make_python_without(tmp_path / "lacking", "pandas", "millstream")
    shift_clock(python, 600)
    variables = {"PREFIX": shop.prefix, "TABLE": "lacking", "PYSPARK_PYTHON": str(python)}

    run = shop.call("run", "--master", cluster.spark, "--until-caught-up", "--no-page", **variables)

    assert run.code == 4
    assert "has no package pandas" in run.err
    assert "has no package millstream" not in run.err
    assert "clock" not in run.err
    assert "Traceback" not in run.err
    assert not any(path.name == "offsets" for path in shop.folder.rglob("*"))

    put_on_cluster(shop.folder, cluster, **{"spark.master": cluster.spark})
    check = shop.call("check", "--connect", **variables)

    assert check.code == 1
    assert re.search(
        r"warning\[MS575\]: the clock of the executor on \S+ is at least \d{3,4} s ahead", check.out
    )


def test_the_pages_of_master_and_workers_answer_no_one(cluster: Endpoints) -> None:
    ports = {
        int(port)
        for server in SERVERS[: SIZE.workers + 1]
        for port in re.findall(
            r"UI' on port (\d+)", stack.log_file(cluster.folder, server).read_text(encoding="utf-8")
        )
    }

    assert len(ports) > SIZE.workers
    for port in ports:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        # A worker that was killed has left the port of its page in the log.
        with contextlib.closing(connection), contextlib.suppress(ConnectionRefusedError):
            connection.request("GET", "/json/")
            assert connection.getresponse().status == 403


def test_servers_of_the_cluster_are_listed_and_their_secret_is_for_the_owner_alone(
    cluster: Endpoints,
) -> None:
    states = {status.name: status.state for status in stack.status(cluster.folder)}
    files = [path for path in (Home(cluster.folder) / "spark").iterdir() if path.is_file()]

    assert {server: states[server] for server in SERVERS[: SIZE.workers + 1]} == dict.fromkeys(
        SERVERS[: SIZE.workers + 1], "running"
    )
    assert stack.environment(cluster.folder)["SPARK_MASTER"] == cluster.spark
    assert files
    assert all(path.stat().st_mode & 0o077 == 0 for path in files)


@pytest.mark.whole
@pytest.mark.timeout(600)
def test_a_driver_without_the_secret_is_refused_in_a_sentence(
    shop: Project, cluster: Endpoints, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("another")
    spec = shop.folder / "pipeline.yml"
    lines = spec.read_text(encoding="utf-8").splitlines()
    secret = next(line for line in lines if "secret.file" in line)
    spec.write_text(
        spec.read_text(encoding="utf-8").replace(
            secret, f"  spark.authenticate.secret.file: {tmp_path / 'secret'}"
        ),
        encoding="utf-8",
    )

    run = shop.call("run", "--master", cluster.spark, "--no-page", PREFIX=shop.prefix, TABLE="refused")

    assert run.code == 4
    assert f"the cluster {cluster.spark} refused this application" in run.err
    assert "Traceback" not in run.err
