"""Checkpoints on S3: each row once after a kill, an outage, and a driver that is suspended at a write."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from acceptance.project import Project, until
from cluster.interruptions import (
    MANY_FILES,
    POINTS,
    assert_taken_over,
    kill_at_points,
    read_files,
    refuse_a_second_driver,
    resume,
    run_through_an_outage,
    run_with_kills_of_a_worker_and_the_driver,
    suspend,
    suspend_at_points,
)
from cluster.orders import put_checkpoints_in, put_on_cluster, send_orders
from cluster.proxies import HoldingProxy, LosingProxy
from cluster.remote_project import FEW_FILES, FILES, write_input, write_project
from cluster.s3_projects import assert_each_row_is_there_once, read_objects
from cluster.test_cluster import ORDERS as SHOP_ORDERS
from cluster.test_cluster import assert_all_sinks_have
from millstream.devstack.supervisor.state import S3_BUCKET, S3_SERVER
from millstream.spec.location import S3_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.s3_projects import S3Process
    from millstream.devstack.supervisor.state import Endpoints

ENDPOINT = f"{S3_SETTINGS}bucket.{S3_BUCKET}.endpoint"


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


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "writes",
    [
        ["checkpoints/orders/offsets/1"],
        pytest.param(
            [
                "checkpoints/orders/sources/0/NUMBER",
                "checkpoints/orders/offsets/NUMBER",
                "checkpoints/totals/_millstream/files/.*/record.json",
            ],
            marks=pytest.mark.whole,
        ),
        pytest.param(
            ["checkpoints/totals/state/0/1/NUMBER.delta", "checkpoints/orders/commits/NUMBER"],
            marks=pytest.mark.whole,
        ),
        pytest.param(
            [
                "files/_millstream/[^/]*/NUMBER.json",
                "table/_delta_log/NUMBER.json",
                "totals/_delta_log/NUMBER.json",
                "letters/_delta_log/NUMBER.json",
            ],
            marks=pytest.mark.whole,
        ),
    ],
)
def test_drivers_that_are_suspended_at_a_write_replace_nothing_of_their_successors(
    stack: Endpoints,
    project: Project,
    root: str,
    conf: dict[str, str],
    s3_process: S3Process,
    writes: list[str],
) -> None:
    """Each takes over from the former one. Its request has left it, and reaches S3 after the last one has ended."""
    files = FEW_FILES if len(writes) == 1 else MANY_FILES
    write_input(project.folder, files)
    place, drivers = root.partition(f"{S3_BUCKET}/")[2], []
    for number, write in enumerate(writes, 1):
        name = write.replace("NUMBER", r"0*(?:[2-9]|\d\d+)")
        proxy = HoldingProxy(conf[ENDPOINT], re.compile(rf"PUT /{S3_BUCKET}/{place}/{name} ".encode()))
        arguments = ("run", "--json", "--no-page", *read_files(number))
        suspended = project.start(*arguments, S3_ENDPOINT=proxy.address)
        until(proxy.is_holding, 240, f"the driver has not written {write}\n{suspended.words()}")
        suspend(suspended)
        drivers.append((suspended, proxy))

    # Its batches have other files than those that the suspended ones were about to plan.
    s3_process.catch_up(project, *read_files(len(writes) + 1))
    before = read_objects(stack, root)
    for suspended, proxy in drivers:
        proxy.release()
        resume(suspended)

    for suspended, proxy in drivers:
        assert_taken_over(suspended)
        proxy.close()
    after = read_objects(stack, root)
    assert "checkpoints/orders/offsets/1" in before
    assert {name for name in before if after.get(name) != before[name]} == set()
    # What the suspended drivers have added to the checkpoint, if anything, does not mislead the next start.
    if after.keys() != before.keys():
        s3_process.catch_up(project)
    assert_each_row_is_there_once(root, conf, files)


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
@pytest.mark.timeout(1800)
def test_drivers_that_are_suspended_in_a_batch_end_after_another_has_taken_over(
    project: Project, root: str, conf: dict[str, str], s3_process: S3Process
) -> None:
    write_input(project.folder, MANY_FILES)
    suspended = suspend_at_points(project, ["batch.begun", "files.staged", "letters.kept", "batch.delivered"])

    # The server waits ten seconds when Spark deletes the folder of a job, once a batch.
    s3_process.catch_up(project, *read_files(6))
    for run in suspended:
        resume(run)

    for run in suspended:
        assert_taken_over(run)
    assert_each_row_is_there_once(root, conf, MANY_FILES)


@pytest.mark.whole
@pytest.mark.timeout(1800)
@pytest.mark.kills(len(POINTS))
def test_each_row_is_once_after_a_kill_at_each_point_of_a_batch(
    project: Project, root: str, conf: dict[str, str], s3_process: S3Process
) -> None:
    write_input(project.folder, MANY_FILES)

    kill_at_points(project, POINTS, 2)
    s3_process.catch_up(project, *read_files(MANY_FILES))

    assert_each_row_is_there_once(root, conf, MANY_FILES)


# Here executors have written to S3 what the driver has not committed or published.
WITH_EXECUTORS = ("files.staged", "letters.kept", "files.committed", "delta.committed", "files.published")


@pytest.mark.whole
@pytest.mark.timeout(1200)
@pytest.mark.kills(len(WITH_EXECUTORS))
def test_each_row_is_once_after_kills_on_a_cluster(
    project: Project, cluster: Endpoints, root: str, conf: dict[str, str]
) -> None:
    write_input(project.folder, MANY_FILES)
    put_on_cluster(project.folder, cluster, **{"spark.master": cluster.spark})

    kill_at_points(project, WITH_EXECUTORS, 1)
    last = project.call("run", "--until-caught-up", "--no-page", *read_files(MANY_FILES))

    assert last.code == 0, last.err
    assert_each_row_is_there_once(root, conf, MANY_FILES)


@pytest.mark.whole
@pytest.mark.timeout(900)
@pytest.mark.kills(2)
def test_a_processor_keeps_its_state_on_s3_although_a_worker_and_then_the_driver_are_killed(
    shop: Project, cluster: Endpoints, root: str, conf: dict[str, str]
) -> None:
    put_checkpoints_in(shop.folder, f"{root}/checkpoints", **conf)
    send_orders(shop.kafka, f"{shop.prefix}orders", range(SHOP_ORDERS))

    run_with_kills_of_a_worker_and_the_driver(shop, cluster, PREFIX=shop.prefix, TABLE="on_s3")

    assert_all_sinks_have(shop, "on_s3", SHOP_ORDERS)
    assert not list(shop.folder.rglob("offsets"))


@pytest.mark.whole
@pytest.mark.timeout(900)
@pytest.mark.kills(1)
def test_a_server_that_is_away_for_half_a_minute_costs_no_row(
    project: Project, stack: Endpoints, root: str, conf: dict[str, str]
) -> None:
    run_through_an_outage(project, stack.folder, S3_SERVER, FILES)
    assert_each_row_is_there_once(root, conf)


@pytest.mark.whole
@pytest.mark.timeout(600)
def test_a_second_driver_is_refused_while_the_first_renews_its_lease(project: Project) -> None:
    reset, listed = refuse_a_second_driver(project, ("reset", "orders", "--yes"), ("checkpoint", "list"))

    assert "a checkpoint on S3 cannot be reset (s3a://" in reset.err
    assert listed.code == 0, listed.err


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
former = system.getFileStatus(Path(f"{root}/offsets/7"))
jvm.millstream.ConditionalWrites.write(system, Path(f"{root}/offsets/7"), bytearray(b"newer"), True)
answer["newer"] = read("offsets/7")
opened = system.openFile(Path(f"{root}/offsets/7")).withFileStatus(former).build().get()
answer["changed"] = attempt(opened.read)
opened.close()
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


WRITERS = """
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from py4j.protocol import Py4JJavaError
from millstream.spark import internals

jvm = internals.jvm(spark)
Path = jvm.org.apache.hadoop.fs.Path
system = Path(root).getFileSystem(internals.hadoop_configuration(spark))
together = Barrier(4)

def create(name):
    together.wait()
    try:
        jvm.millstream.ConditionalWrites.write(system, Path(f"{root}/{name}"), bytearray(b"x" * 1500), False)
    except Py4JJavaError:
        return 0
    return 1

with ThreadPoolExecutor(4) as pool:
    answer = {"winners": [sum(pool.map(create, [f"{number}.json"] * 4)) for number in range(20)]}
"""


@pytest.mark.timeout(300)
def test_the_classes_create_an_object_once_and_publish_nothing_that_was_cancelled(
    s3_process: S3Process, root: str
) -> None:
    assert s3_process.ask(CLASSES, root=root) == {
        "class": "millstream.ConditionalCheckpointFileManager",
        "early": "early",
        "late": "org.apache.hadoop.fs.FileAlreadyExistsException",
        "content": "early",
        "state": ["state", "org.apache.hadoop.fs.FileAlreadyExistsException", "state"],
        "cancelled": False,
        "names": ["7"],
        "newer": "newer",
        # Of a reader that has asked for the tag before the object was replaced: it asks again.
        "changed": "org.apache.hadoop.fs.s3a.RemoteFileChangedException",
        "missing": 0,
        "local": [True, "java.io.FileNotFoundException"],
        "log": [None, "java.nio.file.FileAlreadyExistsException", "a\n", None, "c\n"],
    }


@pytest.mark.timeout(300)
def test_of_simultaneous_writers_in_one_process_one_creates_the_object(
    s3_process: S3Process, root: str
) -> None:
    # The server looks for an object and then writes it, so without a lock several of them succeed.
    assert s3_process.ask(WRITERS, root=root) == {"winners": [1] * 20}
