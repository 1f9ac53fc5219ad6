"""On S3: each row once in tables, files, spooled batches and dead letters; refusals in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from acceptance.project import Project
from cluster.interruptions import run_through_an_outage
from cluster.remote_project import FILES, write_project
from cluster.s3_projects import assert_each_row_is_there_once
from millstream.connectors.api.values.bucket_options import set_bucket_settings
from millstream.connectors.delta.dead_letters import DeltaDeadLetterStore
from millstream.devstack.supervisor.state import S3_SERVER
from millstream.spec.location import Location

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.s3_projects import S3Process
    from millstream.devstack.supervisor.state import Endpoints

RACE = """
from millstream.connectors.files.sink_folder import open_folder
from millstream.spec.location import Location

folder = open_folder(spark, Location(f"{root}/race"))

class Late(str):
    def encode(self, *options):
        # The other driver writes the manifest while this one has opened it.
        assert folder.create("0.json", "first")
        return super().encode(*options)

is_late_first = folder.create("0.json", Late("late"))
folder.create("staged", "rows")
folder.move("staged", "part/rows")
answer = {"late": is_late_first, "text": folder.text("0.json"), "names": folder.names("part")}
"""
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
FOLDERS = """
import time
from millstream.spark import internals

jvm = internals.jvm(spark)
folder = jvm.org.apache.hadoop.fs.Path(f"{root}/job")
system = folder.getFileSystem(internals.hadoop_configuration(spark))
system.mkdirs(jvm.org.apache.hadoop.fs.Path(folder, "_temporary/0"))
system.mkdirs(jvm.org.apache.hadoop.fs.Path(folder, "_temporary/0/_temporary"))
begun = time.monotonic()
system.delete(folder, True)
answer = {"seconds": time.monotonic() - begun, "exists": system.exists(folder)}
"""
pytestmark = pytest.mark.whole


@pytest.fixture
def project(stack: Endpoints, root: str, conf: dict[str, str], tmp_path: Path) -> Iterator[Project]:
    write_project(tmp_path, root, conf, dead_letters=f"{root}/letters")
    project = Project(tmp_path, stack.kafka, stack.postgres, "")
    yield project
    project.close()


@pytest.mark.timeout(900)
@pytest.mark.kills(1)
def test_each_row_is_once_after_a_kill_and_a_restart_and_dead_letters_are_read_without_spark(
    project: Project, root: str, conf: dict[str, str]
) -> None:
    first = project.start("run", "--json", "--no-page", "--set", "defaults.trigger=1 second")
    first.await_event("batch_committed", count=3)
    first.kill()

    project.catch_up()

    assert_each_row_is_there_once(root, conf)
    set_bucket_settings(conf)
    letters = DeltaDeadLetterStore(path=Location(f"{root}/letters"))
    assert sum(letters.counts().values()) == 2 * FILES


@pytest.mark.timeout(900)
@pytest.mark.kills(1)
def test_a_server_that_is_away_for_half_a_minute_costs_no_row(
    project: Project, stack: Endpoints, root: str, conf: dict[str, str]
) -> None:
    run_through_an_outage(project, stack.folder, S3_SERVER, FILES)
    assert_each_row_is_there_once(root, conf)


@pytest.mark.timeout(600)
def test_a_manifest_that_another_driver_wrote_meanwhile_is_not_replaced(
    root: str, s3_process: S3Process
) -> None:
    assert s3_process.ask(RACE, root=root) == {"late": False, "text": "first", "names": ["rows"]}


@pytest.mark.timeout(600)
def test_a_wrong_secret_and_a_missing_bucket_are_one_sentence_each(
    project: Project, conf: dict[str, str]
) -> None:
    file, secret = (
        project.folder / "pipeline.yml",
        next(name for name in conf if name.endswith(".secret.key")),
    )
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace(conf[secret], "not-the-secret"), encoding="utf-8")
    wrong = project.call("check", "--connect")
    file.write_text(text.replace("millstream-local", "no-such-bucket"), encoding="utf-8")
    missing = project.call("run", "--until-caught-up", "--no-page")

    assert (
        "S3 does not accept the access key for bucket 'millstream-local' (SignatureDoesNotMatch)" in wrong.out
    )
    assert "there is no bucket 'no-such-bucket'" in missing.err
    assert missing.code == 4
    for output in (wrong.out, wrong.err, missing.out, missing.err):
        assert conf[secret] not in output
        assert "not-the-secret" not in output


@pytest.mark.timeout(300)
def test_a_batch_is_spooled_on_s3_once_and_forgotten(root: str, s3_process: S3Process) -> None:
    answer = s3_process.ask(SPOOL, root=root)

    folder = f"{root}/checkpoints/orders"
    batches = [["orders", "id", "delta:table", number, rows, folder] for number, rows in ((7, 3), (8, 4))]
    assert answer == {
        "outside": batches,
        "next": batches,
        "rows": [2, False],
        "after": [[8], 1],
        "has": False,
    }


@pytest.mark.timeout(300)
def test_folders_that_a_job_of_spark_leaves_are_deleted_without_a_wait(
    root: str, s3_process: S3Process
) -> None:
    answer = s3_process.ask(FOLDERS, root=root)

    assert not answer["exists"]
    # The store would wait ten times for a second.
    assert answer["seconds"] < 9
