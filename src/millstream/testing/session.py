"""The one Spark session of all tests, and within it a session of its own for each case."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.pipeline.stateful import STORE
from millstream.runtime.checker import at_start
from millstream.runtime.lending import lent
from millstream.runtime.session import open_session

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from millstream.pipeline.model import Pipeline

# A test's JVM lives too briefly to gain by the second compiler, or by a collector with threads of its own.
_BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_START: Mapping[str, object] = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.driver.defaultJavaOptions": _BRIEF,
    # A few rows a batch: events and tasks are what a step costs.
    "spark.ui.enabled": False,
    "spark.sql.ui.retainedExecutions": 1,
    "spark.streaming.ui.retainedQueries": 1,
}
# Of two rows a batch, generated code costs more to compile than it saves.
_CASE: Mapping[str, object] = {
    "spark.sql.shuffle.partitions": 1,
    "spark.sql.streaming.pollingDelay": "1ms",
    # A query that hangs is left behind after this long.
    "spark.sql.streaming.stopTimeout": "5s",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.codegen.wholeStage": False,
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": False,
    # Nobody looks at a test's plans, nor at its checkpoint after it.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": False,
}
# Where Hadoop finds no library of its own, it starts `chmod` twice for each file it makes: for the file and for its
# check sum. The plain file system makes neither a check sum nor a process, of which a case of three steps has 41.
_FILES: Mapping[str, str] = {
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    # Else the one that another session has opened is taken.
    "fs.file.impl.disable.cache": "true",
}
_MEMORY = Path("/dev/shm")  # noqa: S108 - folders in it are made by tempfile, for this user alone


def open_tests(conf: Mapping[str, object], log: Path | None = None) -> SparkSession:
    """The session of all tests, with those of `conf` that Spark takes at its start only; they win over ours.

    Always on this machine, whatever master a pipeline names. Raises NotReady when Java or a jar is missing or the
    JVM does not start.
    """
    started = {key: value for key, value in conf.items() if at_start(key) and key != "spark.master"}
    return open_session("millstream test", {**_START, **started}, log)


@contextmanager
def case_session(spark: SparkSession, pipeline: Pipeline) -> Iterator[SparkSession]:
    """A session with views and settings of its own: those of a small test, then the pipeline's.

    Settings of the pipeline that Spark takes at its start only have no effect.
    """
    with lent(spark, {**_CASE, **pipeline.spark}) as session:
        # RocksDB's files go through Hadoop's own local file system, which no other may stand for.
        files = {} if STORE in pipeline.spark else _FILES
        for key, value in files.items():
            session.conf.set(key, value)
        yield session


def settings_of_later(session: SparkSession, before: Pipeline, after: Pipeline) -> None:
    """Give a case's session the settings of a later version of its pipeline; a query takes them at its next start."""
    for key in {**before.spark, **after.spark}:
        value = after.spark.get(key, _CASE.get(key))
        if not session.conf.isModifiable(key):
            continue
        if value is None:
            session.conf.unset(key)
        else:
            session.conf.set(key, value if isinstance(value, bool | int | str) else str(value))


@contextmanager
def case_folder() -> Iterator[Path]:
    """A folder for one case, in memory where the machine has such a place; it is gone afterwards."""
    place = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="millstream-test-", dir=place) as folder:
        yield Path(folder)
