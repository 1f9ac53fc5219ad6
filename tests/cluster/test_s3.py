"""Tables, files and dead letters on S3: each row once after a kill and an outage, and refusals in one sentence."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from acceptance.project import Project
from cluster.remote_project import FILES, ROWS, write_project
from millstream.connectors.api.values.bucket_options import set_bucket_settings
from millstream.connectors.delta.dead_letters import DeltaDeadLetterStore
from millstream.devstack.stack import bucket_settings, start, stop, up
from millstream.devstack.supervisor.state import S3_SERVER
from millstream.spark.settings import S3_CLIENT
from millstream.spec.location import Location

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from millstream.devstack.supervisor.state import Endpoints

READER = """
import json, sys
from millstream.connectors.files.sink_folder import open_folder
from millstream.spark.session import open_session, stop_session
from millstream.spec.location import Location

root, conf = sys.argv[1], json.loads(sys.argv[2])
spark = open_session("reader", {"spark.master": "local[1]", "spark.driver.memory": "1g", **conf})
if sys.argv[3] == "race":
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
else:
    answer = {
        "files": spark.read.parquet(f"{root}/files").select("id").toArrow()["id"].to_pylist(),
        "table": spark.read.format("delta").load(f"{root}/table").select("id").toArrow()["id"].to_pylist(),
        "totals": {row["user"]: row["orders"] for row in
                   spark.read.format("delta").load(f"{root}/totals").toArrow().to_pylist()},
        "letters": spark.read.format("delta").load(f"{root}/letters").toArrow()["query"].to_pylist(),
    }
print("ANSWER " + json.dumps(answer))
stop_session(spark)
"""
pytestmark = pytest.mark.whole


@pytest.fixture(scope="module")
def bucket(stack: Endpoints) -> Iterator[str]:
    yield up(stack.folder, servers=(), with_s3=True, attached=True).s3
    stop(stack.folder, S3_SERVER)


@pytest.fixture
def root(bucket: str, tmp_path: Path) -> str:
    """A folder of its own in the bucket."""
    return f"{bucket}/{tmp_path.name}"


@pytest.fixture
def conf(stack: Endpoints, bucket: str) -> dict[str, str]:
    """The settings with which Spark reaches the bucket."""
    assert bucket
    return {**S3_CLIENT, **bucket_settings(stack.folder)}


@pytest.fixture
def project(stack: Endpoints, root: str, conf: dict[str, str], tmp_path: Path) -> Iterator[Project]:
    write_project(tmp_path, root, conf, dead_letters=f"{root}/letters")
    project = Project(tmp_path, stack.kafka, stack.postgres, "")
    yield project
    project.close()


def ask(root: str, conf: dict[str, str], question: str) -> dict[str, object]:
    """Ask a process of its own, because the session of the tests has no client of S3."""
    done = subprocess.run(
        [sys.executable, "-c", READER, root, json.dumps(conf), question],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.rpartition("ANSWER ")[2])  # type: ignore[no-any-return]


def assert_each_row_is_there_once(root: str, conf: dict[str, str]) -> None:
    everything = Counter(range(FILES * ROWS))
    stored = ask(root, conf, "rows")

    assert Counter(stored["files"]) == everything  # type: ignore[arg-type]
    assert Counter(stored["table"]) == everything  # type: ignore[arg-type]
    assert stored["totals"] == Counter(f"u{n % 7}" for n in range(FILES * ROWS))
    assert Counter(stored["letters"]) == {"orders": FILES, "totals": FILES}  # type: ignore[arg-type]


@pytest.mark.timeout(900)
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
def test_a_server_that_is_away_for_half_a_minute_costs_no_row(
    project: Project, stack: Endpoints, root: str, conf: dict[str, str]
) -> None:
    run = project.start("run", "--json", "--no-page", "--set", "defaults.trigger=1 second")
    run.await_event("batch_committed", count=2)
    stop(stack.folder, S3_SERVER)
    threading.Event().wait(30)
    start(stack.folder, S3_SERVER)

    for query in ("orders", "totals"):
        run.await_event("batch_committed", count=FILES, query=query)
    run.signal(signal.SIGTERM)

    assert run.ends() == 0, run.words()
    assert_each_row_is_there_once(root, conf)


@pytest.mark.timeout(600)
def test_a_manifest_that_another_driver_wrote_meanwhile_is_not_replaced(
    root: str, conf: dict[str, str]
) -> None:
    assert ask(root, conf, "race") == {"late": False, "text": "first", "names": ["rows"]}


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
