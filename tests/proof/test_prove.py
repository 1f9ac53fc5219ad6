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

if TYPE_CHECKING:
    from collections.abc import Mapping

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
# killed at least once, and of three with this seed.
KILLS = sweep.size(20, 20, "MILLSTREAM_KILLS")
# The first one has two drivers on one checkpoint too; unit/checkpoint/test_lock.py refuses a second process.
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


def prove(
    folder: Path, *options: str, env: Mapping[str, str] | None = None
) -> tuple[int, dict[str, Any], str]:
    """The exit code, the report and all that was said."""
    report = folder / "report.json"
    command = [
        sys.executable,
        "-m",
        "millstream",
        "prove",
        "-f",
        str(folder),
        "--json",
        str(report),
        *options,
    ]
    result = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, env={**os.environ, **(env or {})}
    )
    output = result.stdout + result.stderr
    return result.returncode, json.loads(report.read_text()) if report.exists() else {}, output


def project(folder: Path, source: str, rest: str) -> None:
    (folder / "pipeline.yml").write_text(ORDERS.replace("SOURCE", source) + rest)


# Each way in which sinks guard and compare, once, and a writer that breaks its promise: what `make test` kills.
SHORT = """
views:
  per_user: SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id
queries:
  orders:
    to:
      - delta: {path: lake/orders}
      - postgres: {url: "${POSTGRES_URL:-postgresql://localhost/postgres}", table: orders}
      - kafka: {bootstrap_servers: "${KAFKA:-localhost:9092}", topic: out}
        guarantee: exactly-once
      - delta: {path: lake/forgotten}
  counts:
    from: per_user
    output_mode: update
    to:
      - delta: {path: lake/some, merge_on: [user_id], delete_when: "n % 3 = 0"}
      - parquet: {path: lake/counts, layout: by_batch}
      - console: {}
"""


@pytest.mark.timeout(1200)
def test_sinks_survive_faults_and_kills_and_a_writer_that_forgets_is_found_out(
    tmp_path: Path,
) -> None:
    project(tmp_path, 'kafka: {bootstrap_servers: "${KAFKA:-localhost:9092}", subscribe: orders}', SHORT)
    (tmp_path / "forgetful").mkdir()
    (tmp_path / "forgetful" / "sitecustomize.py").write_text(FORGETFUL)
    path = os.pathsep.join([str(tmp_path / "forgetful"), *filter(None, [os.environ.get("PYTHONPATH")])])
    faults = FAULTS if sweep.WHOLE else FAULTS[:1]

    code, report, output = prove(
        tmp_path,
        *("--kills", "3", "--seed", "2", "--rows", "1000", "--faults", ",".join(faults)),
        env={"PYTHONPATH": path},
    )

    assert (code, report.get("fine")) == (1, False), output
    assert all(report["kills_by_process"].values()), output
    assert (report["kills"], report["commits_deleted"]) == (3, 2)
    assert [sink["compared"] for sink in report["sinks"]] == [True] * 6
    (forgotten,) = [sink for sink in report["sinks"] if not sink["fine"]]
    assert "forgotten" in forgotten["sink"]
    assert (forgotten["missing"], forgotten["different"], forgotten["doubled"] > 0) == (0, 0, True)
    assert forgotten["keys"]["doubled"]
    may_mount = not any("disk-full is left out" in note for note in report["notes"])
    assert set(report["faults"]) == {*faults} - ({"disk-full"} if not may_mount else set())
    assert any("stores no rows" in note for note in report["notes"])


# The short proof has each process killed and each way to compare, and tests/recovery each kind of sink.
@pytest.mark.whole
@pytest.mark.timeout(1200 + 60 * KILLS)
def test_every_kind_of_sink_survives_its_kills_and_a_deleted_commit(tmp_path: Path) -> None:
    shutil.copy(EVERY_SINK / "pipeline.yml", tmp_path)

    code, report, output = prove(
        tmp_path, "--kills", str(KILLS), "--seed", "2", "--rows", "6000", "--backfill"
    )

    assert (code, report.get("fine")) == (0, True), output
    assert all(report["kills_by_process"].values()), output
    assert report["rows_backfilled"]["orders delta:lake/orders"] > 0, output
    assert (report["kills"], report["commits_deleted"], len(report["sinks"])) == (KILLS, 4, 10)


def test_no_topic_is_made_on_a_broker_that_nobody_gave_to_the_stack(tmp_path: Path) -> None:
    kafka = 'kafka: {bootstrap_servers: "${KAFKA:-localhost:9092}", subscribe: orders}'
    project(tmp_path, kafka, f"queries: {{orders: {{to: {{parquet: {tmp_path / 'out'}}}}}}}\n")

    code, report, output = prove(tmp_path, "--kills", "1", env={"KAFKA": "127.0.0.1:1"})

    assert (code, report) == (4, {}), output
    assert "would be created on the server at 127.0.0.1:1, which the spec or a variable names" in output
    assert "millstream up --kafka 127.0.0.1:1" in output
    assert "topics created" not in output
