"""`prove` as a person types it: pipelines are killed, honest writers are found right, and a lying one is not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import sweep
from commands import call, shared_spark
from millstream.connectors.delta.writer import DeltaWriter
from millstream.devstack.stack import status, up
from millstream.proof import prove as proof
from millstream.spark import session
from proof import killed_drivers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from millstream.devstack.supervisor.state import Endpoints

ORDERS = """
name: shop
spark: {spark.sql.shuffle.partitions: 2, spark.driver.memory: 1g, spark.master: "local[2]"}
sources:
  orders:
    SOURCE
    schema: {id: bigint, user_id: string, amount: double, at: timestamp}
    watermark: {event_time: at, delay_threshold: 4 minutes}
    drop_duplicates_within_watermark: [id]
    on_malformed: drop
"""

# One source into every kind of sink.
EVERY_SINK = Path(__file__).parent / "every_sink"

# The next driver gets ready while one is killed; two hundred kills take an hour. From six on each kind of process is
# killed at least once.
KILLS = sweep.size(20, 20, "MILLSTREAM_KILLS")
# In part, none: drivers in tests/cluster are suspended and replaced, unit/proof/test_kill_loop.py has what `prove`
# makes of such a driver, spark/connectors/test_delta_append.py has two writers of one batch, and
# unit/checkpoint/test_lock.py a second process.
FAULTS = ["zombie-delta", "second-driver", "disk-full", "lock-lost", "zombie-files"]

# The writer of one table notes its batches in a commit of their own, and asks the table for none.
FORGETFUL = """
from millstream.connectors.delta.writer import DeltaWriter

save, append, has_batch = DeltaWriter._save, DeltaWriter._append, DeltaWriter.has_batch


def forgets(self):
    return "forgotten" in str(self._sink.path)


def save_apart(self, frame, mode, options):
    if not forgets(self):
        return save(self, frame, mode, options)
    plain = {key: text for key, text in options.items() if not key.startswith("txn")}
    save(self, frame, mode, plain)
    self._exists = True
    if plain != options:
        save(self, frame.limit(0), "append", options)


def append_apart(self, frame, marks):
    if not forgets(self):
        return append(self, frame, marks)
    return self._save(frame, "append", marks)


DeltaWriter._save, DeltaWriter._append = save_apart, append_apart
DeltaWriter.has_batch = lambda self, batch_id: not forgets(self) and has_batch(self, batch_id)
"""


def read_report(folder: Path) -> dict[str, Any]:
    """The report of a proof; empty if there is none."""
    report = folder / "report.json"
    return json.loads(report.read_text()) if report.exists() else {}


def project(folder: Path, source: str, rest: str) -> None:
    (folder / "pipeline.yml").write_text(ORDERS.replace("SOURCE", source) + rest)


# Each way in which sinks guard and compare, once, and a writer that breaks its promise: what `make test` kills. With
# this seed the JVM is killed alone, between the rows of a Kafka transaction and its end. tests/cluster kills Python
# and the JVM at once, and recovery/test_killed_processes.py Python alone.
SHORT = """
views:
  per_user: SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id
queries:
  orders:
    to:
      - delta: {path: lake/forgotten}
      - delta: {path: lake/orders}
      - postgres: {url: "${POSTGRES_URL:-postgresql://localhost/postgres}", table: orders}
      - kafka: {bootstrap_servers: "${KAFKA:-localhost:9092}", topic: out}
        guarantee: exactly-once
  counts:
    from: per_user
    output_mode: update
    to:
      - delta: {path: lake/some, merge_on: [user_id], delete_when: "n % 3 = 0"}
      - parquet: {path: lake/counts, layout: by_batch}
      - console: {}
"""


@pytest.fixture
def here(spark: SparkSession) -> Iterator[None]:
    """Let `prove` compare its sinks in the session of the tests, and in part run to the end there too."""
    with shared_spark(spark), pytest.MonkeyPatch.context() as patch:
        patch.setattr(proof, "open_session", session.open_session)
        patch.setattr(proof, "shut_down_jvm", lambda: None)
        if not sweep.WHOLE:
            patch.setattr(proof, "Drivers", killed_drivers.KilledDrivers)
            for name in ("_save", "_append", "has_batch"):
                # Replaced by itself, so that it comes back when the proof has ended.
                patch.setattr(DeltaWriter, name, getattr(DeltaWriter, name))
            exec(FORGETFUL, {})
        yield


@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("here")
def test_sinks_survive_faults_and_kills_and_a_writer_that_forgets_is_found_out(
    stack: Endpoints, tmp_path: Path
) -> None:
    project(tmp_path, 'kafka: {bootstrap_servers: "${KAFKA:-localhost:9092}", subscribe: orders}', SHORT)
    (tmp_path / "forgetful").mkdir()
    (tmp_path / "forgetful" / "sitecustomize.py").write_text(FORGETFUL)
    path = os.pathsep.join([str(tmp_path / "forgetful"), *filter(None, [os.environ.get("PYTHONPATH")])])
    faults = FAULTS if sweep.WHOLE else []
    # As `millstream up --kafka … --postgres-url …` does.
    up(tmp_path, outside={"kafka": stack.kafka, "postgres": stack.postgres})
    arguments = (
        "--kills",
        str(killed_drivers.KILLS),
        "--seed",
        "37",
        "--rows",
        "1000",
        "--faults",
        ",".join(faults),
    )

    done = call(
        tmp_path, "prove", "--json", "report.json", *arguments, env={**os.environ, "PYTHONPATH": path}
    )

    report = read_report(tmp_path)
    assert (done.returncode, report.get("fine")) == (1, False), done.both
    assert report["kills_by_process"] == {"both": 0, "python": 0, "jvm": 1}, done.both
    assert (report["kills"], report["commits_deleted"]) == (1, 2)
    assert [sink["compared"] for sink in report["sinks"]] == [True] * 6
    (forgotten,) = [sink for sink in report["sinks"] if not sink["fine"]]
    assert "forgotten" in forgotten["sink"]
    assert (forgotten["missing"], forgotten["different"], forgotten["doubled"] > 0) == (0, 0, True)
    assert forgotten["keys"]["doubled"]
    may_mount = not any("disk-full is left out" in note for note in report["notes"])
    assert set(report["faults"]) == {*faults} - ({"disk-full"} if not may_mount else set())
    assert any("stores no rows" in note for note in report["notes"])
    # A driver is no run of the project: it deletes no log of one, and sends nothing.
    assert not (tmp_path / ".millstream" / "runs").exists()


# The short proof has each process killed and each way to compare, and tests/recovery each kind of sink.
@pytest.mark.whole
@pytest.mark.timeout(1200 + 60 * KILLS)
def test_every_kind_of_sink_survives_its_kills_and_a_deleted_commit(tmp_path: Path) -> None:
    shutil.copy(EVERY_SINK / "pipeline.yml", tmp_path)

    report_file = ("--json", str(tmp_path / "report.json"))
    options = ("--kills", str(KILLS), "--seed", "2", "--rows", "6000", "--backfill")
    command = [sys.executable, "-m", "millstream", "prove", "-f", str(tmp_path), *report_file, *options]

    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    report, output = read_report(tmp_path), done.stdout + done.stderr
    assert (done.returncode, report.get("fine")) == (0, True), output
    assert all(report["kills_by_process"].values()), output
    assert report["rows_backfilled"]["orders delta:lake/orders"] > 0, output
    assert (report["kills"], report["commits_deleted"], len(report["sinks"])) == (KILLS, 4, 10)


def test_no_topic_is_made_on_a_broker_that_nobody_gave_to_the_stack(tmp_path: Path) -> None:
    kafka = 'kafka: {bootstrap_servers: "${KAFKA:-localhost:9092}", subscribe: orders}'
    project(tmp_path, kafka, f"queries: {{orders: {{to: {{parquet: {tmp_path / 'out'}}}}}}}\n")

    arguments = ("--json", "report.json", "--kills", "1")

    done = call(tmp_path, "prove", *arguments, env={**os.environ, "KAFKA": "127.0.0.1:1"})

    assert (done.returncode, read_report(tmp_path)) == (4, {}), done.both
    assert "would be created on the server at 127.0.0.1:1, which the spec or a variable names" in done.both
    assert "millstream up --kafka 127.0.0.1:1" in done.both
    assert "topics created" not in done.both
    # It has stopped the servers that it had started.
    assert status(tmp_path) == []
