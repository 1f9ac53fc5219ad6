"""Create a class-data archive: run a typical pipeline once in a JVM that records each class it loads.

Started in the background by `cds_archive.train_later`: python -m millstream.spark.cds_training ARCHIVE
It waits until the machine is idle, so that it takes nothing from the run that started it.
With --attached it ends with the process that started it, unless that one releases it: then it trains at once.
A command that starts during the training ends it, and the archive is created another time.
Without an argument it runs at once, and only if there is no archive. Use that before many JVMs start, as in tests.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.spark import cds_archive, internals, resources, session

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

# The training waits until the machine had half of its cores to spare for a minute, as no first run leaves it, and
# looks so often, in seconds. A machine that is never idle for a day is asked again at a later start.
LOOK = 20.0
LONGEST_WAIT = 86_400.0

# Seconds between two looks whether a command has started, during the training.
GLANCE = 0.3

# Seconds that a trainer has to remove its files after its starter has ended.
FAREWELL = 3.0

# Writing the archive took 9 s on an idle machine, an AOT cache a minute on a slow one. At the lowest priority it may
# take much longer.
PATIENCE = 900.0

ROWS = [{"key": f"k{n % 3}", "value": n, "at": f"2026-01-01T12:00:{n:02d}Z"} for n in range(20)]
SCHEMA = "key STRING, value BIGINT, at TIMESTAMP"

# Set when the process that started this one has no more work and lets this one outlive it.
_RELEASED = threading.Event()


def train_archive(target: Path, wait: Callable[[], bool] = lambda: True) -> bool:
    """Create the archive `target`. False if another process is creating it or the JVM wrote none.

    `wait` is called while no other process can create the archive. It waits for a good moment, and returns whether
    that came.
    """
    with target.with_suffix(".tried").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        _remove_drafts(target)  # of a training that was killed
        if not wait():
            target.with_suffix(".tried").unlink(missing_ok=True)
            return False
        draft = target.with_suffix(f".{os.getpid()}")
        with tempfile.TemporaryDirectory(prefix="millstream-train-") as scratch:
            log = target.parent / "train.log"
            spark = session.boot_training(cds_archive.recording_flags(draft, target), log)
            _run_pipeline(spark, Path(scratch))
            spark.stop()
            is_written = session.shut_down_jvm(PATIENCE)
        if is_written and (flags := cds_archive.assembly_flags(draft, target)):
            is_written = session.assemble_archive(flags, log, PATIENCE)
        if not is_written or not draft.is_file():
            _remove_drafts(target)
            return False
        cds_archive.install_archive(draft, target)
        _remove_drafts(target)
        target.with_suffix(".tried").unlink(missing_ok=True)
    return True


def wait_until_idle(
    load: Callable[[], float] = lambda: os.getloadavg()[0], pause: Callable[[float], object] = _RELEASED.wait
) -> bool:
    """Wait until at most half of the cores have work, and return whether that happened within a day.

    `load` is the number of processes that had work in the last minute. It is low at the start of a run, too, so the
    first look is a minute later. `pause` waits for some seconds. It returns whether the process that started this one
    has released it: that one has no more work, and there is nothing to wait for.
    """
    most = resources.available_cores() / 2
    is_released = pause(3 * LOOK)
    for _ in range(int(LONGEST_WAIT / LOOK)):
        if is_released or load() <= most:
            return True
        is_released = pause(LOOK)
    return False


def _run_pipeline(spark: SparkSession, scratch: Path) -> None:
    """Run a stream with a window, a join, state and several sinks, then load the connectors' own classes."""
    incoming = scratch / "in"
    incoming.mkdir()
    (incoming / "a.json").write_text("\n".join(map(json.dumps, ROWS)))
    spark.createDataFrame([("k0", 1.5), ("k1", 2.5)], "key STRING, price DOUBLE").write.parquet(
        f"{scratch}/s"
    )
    spark.readStream.schema(SCHEMA).json(str(incoming)).withWatermark("at", "1 minute").createTempView("rows")
    spark.read.parquet(f"{scratch}/s").createTempView("prices")
    windowed = spark.sql(
        "SELECT window(at, '5 seconds') AS w, key, count(*) AS n, sum(value) AS total FROM rows GROUP BY 1, 2"
    )
    joined = spark.sql(
        "SELECT r.*, p.price, to_json(struct(r.*)) AS raw FROM rows r LEFT JOIN prices p USING (key)"
    )
    deduplicated = joined.dropDuplicatesWithinWatermark(["key", "value"])
    for number, (frame, mode) in enumerate(((windowed, "update"), (deduplicated, "append"))):
        stream_writer = frame.writeStream.outputMode(mode).option(
            "checkpointLocation", f"{scratch}/c{number}"
        )
        stream_writer = stream_writer.foreachBatch(partial(_write_sinks, path=f"{scratch}/t{number}"))
        stream_writer.trigger(availableNow=True).start().awaitTermination()
    _load_connectors(spark)


def _write_sinks(batch: DataFrame, _: int, path: str) -> None:
    batch.persist()
    batch.write.format("delta").mode("append").save(f"{path}-delta")
    batch.write.mode("append").partitionBy("key").parquet(f"{path}-parquet")
    batch.sparkSession.read.format("delta").load(f"{path}-delta").createOrReplaceTempView("target")
    batch.createOrReplaceTempView("source")
    batch.sparkSession.sql(
        f"MERGE INTO delta.`{path}-delta` t USING source s ON t.key = s.key AND false"
        " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    batch.toArrow()
    batch.unpersist()


def _load_connectors(spark: SparkSession) -> None:
    jvm: Any = internals.jvm(spark)
    jvm.java.lang.Class.forName("org.postgresql.Driver")
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", "127.0.0.1:1")
    for limit in ("default.api.timeout.ms", "request.timeout.ms"):
        reader = reader.option(f"kafka.{limit}", "1000")
    # No broker answers there, but the client's classes are loaded.
    with contextlib.suppress(Exception):
        reader.option("subscribe", "none").load().selectExpr("from_json(string(value), 'a INT')").collect()


def _follow_starter() -> None:
    """End when the process that started this one ends, unless that process has released this one before."""
    if os.read(0, 1) == cds_archive.RELEASE:
        _RELEASED.set()
    else:
        _end()


def give_way(end: Callable[[], object], pause: Callable[[float], object] = time.sleep) -> None:
    """Call `end` as soon as a command starts."""
    before = cds_archive.last_start()
    while cds_archive.last_start() == before:
        pause(GLANCE)
    end()


def _end() -> None:
    """End this process from a thread that is not its main one. A later start trains at once: this is no failure."""
    os.kill(os.getpid(), signal.SIGTERM)  # the main thread removes its unfinished files
    session.kill_jvm()
    time.sleep(FAREWELL)
    os._exit(1)


def _remove_files_on_termination(target: Path) -> None:
    def leave(*_: object) -> None:
        session.kill_jvm()
        _remove_drafts(target)
        target.with_suffix(".tried").unlink(missing_ok=True)
        sys.exit(1)

    signal.signal(signal.SIGTERM, leave)


def _remove_drafts(target: Path) -> None:
    """Remove unfinished archives. Only the process that has the lock may do so."""
    for path in target.parent.glob(f"{target.stem}.[0-9]*"):
        path.unlink(missing_ok=True)


def _wait_in_background(target: Path) -> bool:
    """Wait for a good moment. From then on, end if another command starts, because it needs the cores."""
    _remove_files_on_termination(target)
    if not wait_until_idle():
        return False
    threading.Thread(target=give_way, args=[_end], daemon=True).start()
    return True


def train_now() -> bool:
    """Create the archive of this machine's Java, unless it exists or there can be none."""
    target = session.archive_path()
    return target is None or bool(cds_archive.jvm_flags(target)) or train_archive(target)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit(0 if train_now() else 1)
    target_path = Path(sys.argv[1])
    if sys.argv[2:] == ["--attached"]:
        threading.Thread(target=_follow_starter, daemon=True).start()
    sys.exit(0 if train_archive(target_path, partial(_wait_in_background, target_path)) else 1)
