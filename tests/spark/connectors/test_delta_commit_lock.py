"""Another process commits to a Delta table on this machine: every commit of ours waits for it, and both are there."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from millstream.connectors.api.dead_letters import COLUMNS, FEW
from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.delta.commit import commit_lock as locks
from millstream.connectors.delta.dead_letter_table import purge
from millstream.connectors.delta.dead_letter_writer import DeltaDeadLetterWriter
from millstream.connectors.delta.sink import DeltaSink
from millstream.connectors.delta.writer import DeltaWriter
from millstream.spec.location import Location
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("interpreted", "small_batches")

# Takes the lock of a folder, and at the next line commits to its table and lets go.
OTHER = """
import json, sys
from pathlib import Path
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
from millstream.connectors.delta.commit.commit_lock import commit_lock

for line in sys.stdin:
    folder = json.loads(line)
    with commit_lock(Path(folder)):
        print("locked", flush=True)
        sys.stdin.readline()
        if DeltaTable.is_deltatable(folder):
            rows = DeltaTable(folder).to_pyarrow_table().slice(0, 1)
        else:
            rows = pa.table({"id": pa.array([1000]), "at": pa.array([1000])})
        mark = CommitProperties(custom_metadata={"by": "the other process"})
        write_deltalake(folder, rows, mode="append", commit_properties=mark)
    print("committed", flush=True)
"""


@pytest.fixture(scope="module")
def other() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", OTHER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def say(other: subprocess.Popen[str], line: str, answer: str) -> None:
    assert other.stdin is not None
    assert other.stdout is not None
    other.stdin.write(f"{line}\n")
    other.stdin.flush()
    assert other.stdout.readline() == f"{answer}\n"


def rows(spark: SparkSession, first: int) -> DataFrame:
    return spark.range(first, first + 3).selectExpr("id", "id AS at")


def append_writer(spark: SparkSession, folder: Path, mode: str, **more: Any) -> Callable[[int], None]:
    sink = DeltaSink.model_validate({"path": str(folder), **more})
    writer = DeltaWriter(sink, SinkIdentity("shop", "orders", "one", "delta:o", OutputMode(mode)))
    writer.open(spark, rows(spark, 0).schema)

    def write(batch: int) -> None:
        writer.write(rows(spark, batch * 10), batch)

    return write


def optimize_writer(spark: SparkSession, folder: Path, size: int) -> Callable[[int], None]:
    keeper = DeltaDeadLetterWriter(
        Location(folder), SinkIdentity("shop", "orders", "one", "letters", OutputMode.APPEND)
    )

    def keep(batch: int) -> None:
        letter = {"query": "orders", "source": "in", "value": b"x", "reason": "bad"}
        letter |= {"batch_id": batch, "at": datetime(2026, 1, 1, tzinfo=UTC)}
        columns = spark.createDataFrame([], COLUMNS).columns
        frame = spark.createDataFrame([tuple(letter.get(name) for name in columns)], COLUMNS)
        keeper.keep(frame, batch, size)

    return keep


def deleted(spark: SparkSession, folder: Path) -> Callable[[int], None]:
    keep = optimize_writer(spark, folder, 10)

    def delete(batch: int) -> None:
        keep(batch) if batch == 0 else purge(Location(folder), None, "in")

    return delete


CDC = {"keys": ["id"], "sequence_by": "at"}
WAYS: dict[str, Callable[..., Callable[[int], None]]] = {
    "append": lambda spark, folder: append_writer(spark, folder, "append"),
    "merge": lambda spark, folder: append_writer(spark, folder, "update", merge_on=["id"]),
    "complete": lambda spark, folder: append_writer(spark, folder, "complete"),
    "cdc": lambda spark, folder: append_writer(spark, folder, "append", cdc=CDC),
    "few letters": lambda spark, folder: optimize_writer(spark, folder, 10),
    "many letters": lambda spark, folder: optimize_writer(spark, folder, FEW),
    "deleted letters": deleted,
}


def commits(folder: Path) -> list[str]:
    """Whose each commit of a table is, in the order of their versions."""
    texts = [file.read_text() for file in sorted((folder / "_delta_log").glob("*.json"))]
    return ["other" if "the other process" in text else "ours" for text in texts]


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set once somebody of this process has found the lock taken."""
    event, try_lock = threading.Event(), locks._try_lock

    def looked(handle: int) -> bool:
        got = try_lock(handle)
        if not got:
            event.set()
        return got

    monkeypatch.setattr(locks, "_try_lock", looked)
    return event


@pytest.mark.parametrize(("way", "begun"), [*((way, True) for way in WAYS), ("append", False)])
def test_a_commit_waits_for_another_process_and_both_are_there(
    way: str,
    begun: bool,
    other: subprocess.Popen[str],
    waits: threading.Event,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    folder = tmp_path / "t"
    commit = WAYS[way](spark, folder)
    if begun:
        commit(0)
    before = commits(folder)
    say(other, json.dumps(str(folder)), "locked")
    with ThreadPoolExecutor(1) as pool:
        try:
            future = pool.submit(commit, 1)
            future.add_done_callback(lambda _: waits.set())
            assert waits.wait(100)
            assert commits(folder) == before
        finally:
            say(other, "", "committed")
        future.result(100)

    after = commits(folder)[len(before) :]
    assert after[0] == "other"
    assert set(after[1:]) == {"ours"}
    assert (folder / locks.LOCK_FILE).exists()


def test_a_query_that_is_stopped_waits_no_longer(
    other: subprocess.Popen[str], waits: threading.Event, spark: SparkSession, tmp_path: Path
) -> None:
    commit = append_writer(spark, tmp_path / "t", "append")
    commit(0)
    say(other, json.dumps(str(tmp_path / "t")), "locked")
    try:
        stream = spark.readStream.format("rate").load().writeStream
        query = stream.foreachBatch(lambda _, __: commit(1)).start()
        assert waits.wait(100)

        query.stop()

        assert not query.isActive
    finally:
        say(other, "", "committed")
    assert commits(tmp_path / "t") == ["ours", "other"]
