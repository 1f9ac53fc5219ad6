"""Checkpoints on S3: each row once after a kill, an outage, and a driver that is suspended at a write."""

from __future__ import annotations

import os
import re
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from acceptance.project import Project, until
from cluster.kills import KILLED_FILES, kill_at_each_point, run_with_kills_of_a_worker_and_the_driver
from cluster.orders import put_on_cluster, send_orders
from cluster.proxies import HoldingProxy, LosingProxy
from cluster.remote_project import FILES, write_input, write_project
from cluster.s3_projects import ask, assert_each_row_is_there_once
from cluster.test_cluster import ORDERS as SHOP_ORDERS
from cluster.test_cluster import assert_all_sinks_have
from millstream.connectors.failpoints import VARIABLE
from millstream.devstack.stack import start, stop
from millstream.devstack.supervisor.state import S3_BUCKET, S3_SERVER
from millstream.spec.location import S3_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from acceptance.project import Running
    from millstream.devstack.supervisor.state import Endpoints

ENDPOINT = f"{S3_SETTINGS}bucket.{S3_BUCKET}.endpoint"
SLOWLY = ("--set", "defaults.trigger=1 second")


@pytest.fixture
def project(stack: Endpoints, root: str, conf: dict[str, str], tmp_path: Path) -> Iterator[Project]:
    """The endpoint of the bucket is the variable S3_ENDPOINT, so that two drivers can have different ones."""
    settings = conf | {ENDPOINT: f"${{S3_ENDPOINT:-{conf[ENDPOINT]}}}"}
    write_project(
        tmp_path,
        root,
        settings,
        defaults={"checkpoints": f"{root}/checkpoints"},
        dead_letters=f"{root}/letters",
    )
    project = Project(tmp_path, stack.kafka, stack.postgres, "")
    yield project
    project.close()


def list_processes(run: Running) -> list[int]:
    """Return the driver's processes: Python, and the JVM that it has started."""
    python = run.process.pid
    children = Path(f"/proc/{python}/task/{python}/children").read_text(encoding="utf-8").split()
    return [python, *map(int, children)]


def is_stopped(process: int) -> bool:
    status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    return status.rpartition(")")[2].split()[0] == "T"


def assert_taken_over(suspended: Running) -> None:
    assert suspended.ends() == 3
    reasons = [event["reason"] for event in suspended.list_events("query_failed")]
    assert any("taken over by" in reason or "another run committed" in reason for reason in reasons), reasons


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "write",
    [
        "checkpoints/orders/offsets/3",
        *(
            pytest.param(write, marks=pytest.mark.whole)
            for write in (
                "checkpoints/orders/commits/2",
                "checkpoints/totals/state/0/1/3.delta",
                "checkpoints/orders/sources/0/3",
                "checkpoints/totals/_millstream/files/.*/record.json",
                "table/_delta_log/0*3.json",
                "totals/_delta_log/0*3.json",
                "letters/_delta_log/0*3.json",
                "files/_millstream/.*/3.json",
            )
        ),
    ],
)
def test_a_driver_that_is_suspended_at_a_write_replaces_nothing_of_its_successor(
    project: Project, root: str, conf: dict[str, str], write: str
) -> None:
    """The request has left the driver, and reaches S3 after the successor has ended."""
    place = root.partition(f"{S3_BUCKET}/")[2]
    proxy = HoldingProxy(conf[ENDPOINT], re.compile(rf"PUT /{S3_BUCKET}/{place}/{write} ".encode()))
    suspended = project.start("run", "--json", "--no-page", *SLOWLY, S3_ENDPOINT=proxy.address)
    until(proxy.is_holding, 240, f"the driver has not written {write}\n{suspended.words()}")
    processes = list_processes(suspended)
    assert len(processes) > 1, "the JVM is not suspended"
    for process in processes:
        os.kill(process, signal.SIGSTOP)

    project.catch_up()
    proxy.release()
    for process in processes:
        os.kill(process, signal.SIGCONT)

    assert_taken_over(suspended)
    proxy.close()
    # What the suspended driver left in the checkpoint does not mislead the next start.
    project.catch_up()
    assert_each_row_is_there_once(root, conf)


# Of each kind of file the client finds the one that it has just written, when it asks again.
LOST_RESPONSES = (
    "checkpoints/orders/metadata",
    "checkpoints/orders/offsets/1",
    "checkpoints/totals/_millstream/lease.json",
    "checkpoints/totals/state/0/1/1.delta",
    "checkpoints/orders/sources/0/2",
    "checkpoints/totals/commits/2",
    "checkpoints/orders/_millstream/files/0/record.json",
    "table/_delta_log/0*3.json",
    "totals/_delta_log/0*3.json",
    "letters/_delta_log/0*4.json",
    "files/_millstream/[^/]*/3.json",
)


@pytest.mark.whole
@pytest.mark.timeout(600)
def test_a_write_whose_response_is_lost_is_not_taken_for_another_drivers(
    project: Project, root: str, conf: dict[str, str]
) -> None:
    place = root.partition(f"{S3_BUCKET}/")[2]
    names = "|".join(LOST_RESPONSES)
    proxy = LosingProxy(conf[ENDPOINT], re.compile(rf"PUT /{S3_BUCKET}/{place}/({names}) ".encode()))

    run = project.start("run", "--until-caught-up", "--json", "--no-page", S3_ENDPOINT=proxy.address)
    code = run.ends()
    proxy.close()

    assert code == 0, run.words()
    assert len(proxy.lost) == len(LOST_RESPONSES), proxy.lost
    assert_each_row_is_there_once(root, conf)


@pytest.mark.whole
@pytest.mark.timeout(600)
@pytest.mark.parametrize("point", ["batch.begun", "batch.delivered", "files.staged", "letters.kept"])
def test_a_driver_that_is_suspended_in_a_batch_ends_after_another_has_taken_over(
    project: Project, root: str, conf: dict[str, str], point: str
) -> None:
    suspended = project.start("run", "--json", "--no-page", **{VARIABLE: f"{point}=stop@3"})
    until(lambda: is_stopped(suspended.process.pid), 240, "the driver has not come to its failpoint")

    project.catch_up()
    suspended.signal(signal.SIGCONT)

    assert_taken_over(suspended)
    assert_each_row_is_there_once(root, conf)


@pytest.mark.whole
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("time", [1, 2])
def test_each_row_is_once_after_a_kill_at_each_point_of_a_batch(
    project: Project, root: str, conf: dict[str, str], time: int
) -> None:
    write_input(project.folder, KILLED_FILES)

    kill_at_each_point(project, time)
    project.catch_up()

    assert_each_row_is_there_once(root, conf, KILLED_FILES)


@pytest.mark.whole
@pytest.mark.timeout(900)
def test_each_row_is_once_after_a_kill_on_a_cluster(
    project: Project, cluster: Endpoints, root: str, conf: dict[str, str]
) -> None:
    put_on_cluster(project.folder, cluster, **{"spark.master": cluster.spark})
    first = project.start("run", "--json", "--no-page", *SLOWLY)
    first.await_event("batch_committed", count=3)
    first.kill()

    project.catch_up()

    assert_each_row_is_there_once(root, conf)


@pytest.mark.whole
@pytest.mark.timeout(900)
def test_a_processor_keeps_its_state_on_s3_although_a_worker_and_then_the_driver_are_killed(
    shop: Project, cluster: Endpoints, root: str, conf: dict[str, str]
) -> None:
    file = shop.folder / "pipeline.yml"
    spec = yaml.safe_load(file.read_text(encoding="utf-8"))
    spec["spark"] |= conf
    spec["defaults"]["checkpoints"] = f"{root}/checkpoints"
    file.write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")
    send_orders(shop.kafka, f"{shop.prefix}orders", range(SHOP_ORDERS))

    run_with_kills_of_a_worker_and_the_driver(shop, cluster, PREFIX=shop.prefix, TABLE="on_s3")

    assert_all_sinks_have(shop, "on_s3", SHOP_ORDERS)
    assert not list(shop.folder.rglob("offsets"))


@pytest.mark.whole
@pytest.mark.timeout(900)
def test_a_server_that_is_away_for_half_a_minute_costs_no_row(
    project: Project, stack: Endpoints, root: str, conf: dict[str, str]
) -> None:
    run = project.start("run", "--json", "--no-page", *SLOWLY)
    run.await_event("batch_committed", count=2)
    stop(stack.folder, S3_SERVER)
    threading.Event().wait(30)
    start(stack.folder, S3_SERVER)

    for query in ("orders", "totals"):
        run.await_event("batch_committed", count=FILES, query=query)
    run.signal(signal.SIGTERM)

    assert run.ends() == 0, run.words()
    assert_each_row_is_there_once(root, conf)


@pytest.mark.whole
@pytest.mark.timeout(600)
def test_a_second_driver_is_refused_while_the_first_renews_its_lease(project: Project) -> None:
    first = project.start("run", "--json", "--no-page")
    first.await_event("query_started", count=2)

    second = project.call("run", "--until-caught-up", "--no-page")
    reset = project.call("reset", "orders", "--yes")
    listed = project.call("checkpoint", "list")

    assert second.code == 3
    assert "is held by 'remote.orders' (process " in second.err
    assert "a reset is not possible for s3a://" in reset.err
    assert listed.code == 0, listed.err
    first.signal(signal.SIGTERM)
    assert first.ends() == 0, first.words()


@pytest.mark.whole
@pytest.mark.timeout(300)
def test_another_class_for_the_files_of_a_checkpoint_is_refused(project: Project) -> None:
    file = project.folder / "pipeline.yml"
    name = "spark.sql.streaming.checkpointFileManagerClass"
    text = file.read_text(encoding="utf-8").replace("spark:\n", f"spark:\n  {name}: org.example.Other\n")
    file.write_text(text, encoding="utf-8")

    result = project.call("run", "--until-caught-up", "--no-page")

    assert f"{name} cannot be org.example.Other with a checkpoint on S3" in result.err


CLASSES = """
from py4j.protocol import Py4JJavaError
from millstream.spark import internals
from millstream.spark.settings import S3_CHECKPOINTS

jvm = internals.jvm(spark)
conf = internals.hadoop_configuration(spark)
Path = jvm.org.apache.hadoop.fs.Path
system = Path(root).getFileSystem(conf)

def attempt(call):
    try:
        return call()
    except Py4JJavaError as error:
        return str(error.java_exception.getClass().getName())

def read(name):
    return str(jvm.millstream.ConditionalWrites.read(system, Path(f"{root}/{name}"))[1])

def finish(stream, text):
    stream.write(bytearray(text.encode()))
    return attempt(stream.close) or read("offsets/7")

for key, value in S3_CHECKPOINTS.items():
    conf.set(key, value)
create = getattr(jvm.org.apache.spark.sql.execution.streaming.checkpointing, "CheckpointFileManager").create
files = create(Path(root), conf)
offsets = Path(f"{root}/offsets/7")
late, early = files.createAtomic(offsets, False), files.createAtomic(offsets, False)
answer = {"class": str(files.getClass().getName())}
answer["early"], answer["late"] = finish(early, "early"), finish(late, "late")
late.cancel()
answer["content"] = read("offsets/7")
late, early = files.createAtomic(offsets, True), files.createAtomic(offsets, True)
answer["state"] = [finish(early, "state"), finish(late, "late"), read("offsets/7")]
cancelled = files.createAtomic(Path(f"{root}/offsets/8"), False)
cancelled.write(bytearray(b"half"))
cancelled.cancel()
cancelled.close()
answer["cancelled"] = files.exists(Path(f"{root}/offsets/8"))
answer["names"] = [str(status.getPath().getName()) for status in files.list(Path(f"{root}/offsets"))]
answer["missing"] = attempt(lambda: len(files.list(Path(f"{root}/nothing"))))
local = create(Path("file:/tmp"), conf)
answer["local"] = [local.isLocal(), attempt(lambda: local.list(Path("file:/nothing-here")))]

log = jvm.millstream.ConditionalLogStore(conf)
commit = Path(f"{root}/_delta_log/00000000000000000000.json")
def write(text, replaces):
    lines = jvm.java.util.ArrayList()
    lines.add(text)
    return attempt(lambda: log.write(commit, lines.iterator(), replaces, conf))
answer["log"] = [write("a", False), write("b", False), read("_delta_log/00000000000000000000.json"),
                 write("c", True), read("_delta_log/00000000000000000000.json")]
"""


@pytest.mark.timeout(300)
def test_the_classes_create_an_object_once_and_publish_nothing_that_was_cancelled(
    root: str, conf: dict[str, str]
) -> None:
    answer = ask(root, conf, CLASSES)

    assert answer == {
        "class": "millstream.ConditionalCheckpointFileManager",
        "early": "early",
        "late": "org.apache.hadoop.fs.FileAlreadyExistsException",
        "content": "early",
        "state": ["state", "org.apache.hadoop.fs.FileAlreadyExistsException", "state"],
        "cancelled": False,
        "names": ["7"],
        "missing": 0,
        "local": [True, "java.io.FileNotFoundException"],
        "log": [None, "java.nio.file.FileAlreadyExistsException", "a\n", None, "c\n"],
    }


SPOOL = """
from pathlib import Path
from millstream.checkpoint.lock import CheckpointLock
from millstream.checkpoint.remote.path import RemotePath
from millstream.engine.delivery.batch_spool import BatchSpool

folder = RemotePath(f"{root}/checkpoints/orders")
spool = BatchSpool(folder / "_millstream" / "_set_aside" / "orders" / "id" / "delta%3Atable")
def describe(batch):
    return [batch.query, batch.query_id, batch.sink, batch.batch, batch.rows(spark).count(), str(batch.checkpoint)]
rows = folder / "_millstream" / "rows" / "id" / "delta%3Atable"

with CheckpointLock(folder, "remote.orders"):
    spool.spool(spark.range(3).coalesce(1), 7, "away")
    spool.spool(spark.range(5), 7, "away again")
    # A driver was killed before it had spooled a batch.
    spark.range(9).write.parquet(str(rows / "left"))
    spool.spool(spark.range(4), 8, "away")
answer = {"outside": [describe(batch) for batch in spool.batches()]}
with CheckpointLock(folder, "remote.orders"):
    answer["next"] = [describe(batch) for batch in spool.batches()]
    answer["rows"] = [len(list(rows.glob("*"))), (rows / "left").exists()]
    spool.oldest().forget()
    answer["after"] = [batch.batch for batch in spool.batches()], len(list(rows.glob("*")))
    spool.oldest().forget()
    answer["has"] = spool.has_batches()
"""


@pytest.mark.whole
@pytest.mark.timeout(300)
def test_a_batch_is_spooled_on_s3_once_and_forgotten(root: str, conf: dict[str, str]) -> None:
    answer = ask(root, conf, SPOOL)

    folder = f"{root}/checkpoints/orders"
    batches = [["orders", "id", "delta:table", number, rows, folder] for number, rows in ((7, 3), (8, 4))]
    assert answer == {
        "outside": batches,
        "next": batches,
        "rows": [2, False],
        "after": [[8], 1],
        "has": False,
    }
