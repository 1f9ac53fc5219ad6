"""Open the Spark session that all tests share, and an isolated session for each case."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.checking.batch_check import is_startup_setting
from millstream.pipeline.stateful import STORE
from millstream.spark.session import open_session
from millstream.spark.session_scope import separate_session
from millstream.testing.harness.manual_clock import RETAINED_REPORTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from millstream.pipeline.model import Pipeline

# A test's JVM is too short-lived to gain from the C2 compiler or a parallel collector. With C1 alone,
# the code cache is 48 MB, which about fifty tests fill; the JVM would then evict and recompile code all the time.
_SHORT_LIVED_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
_STARTUP_CONF: Mapping[str, object] = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.driver.defaultJavaOptions": _SHORT_LIVED_JVM,
    # Batches have few rows, so that events and tasks dominate the cost of a step.
    "spark.ui.enabled": False,
    "spark.sql.ui.retainedExecutions": 1,
    "spark.streaming.ui.retainedQueries": 1,
}
# For two rows per batch, compiling generated code costs more than it saves.
_CASE_CONF: Mapping[str, object] = {
    "spark.sql.shuffle.partitions": 1,
    "spark.sql.streaming.pollingDelay": "1ms",
    # A query that hangs is abandoned after this time.
    "spark.sql.streaming.stopTimeout": "5s",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.codegen.wholeStage": False,
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": False,
    # The plans of a test, and its checkpoint after the test, are never inspected.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": False,
}
# The harness reads the report of each batch. A pipeline may set another number for its runs.
_HARNESS_CONF: Mapping[str, object] = {"spark.sql.streaming.numRecentProgressUpdates": RETAINED_REPORTS}
# Without its native library, Hadoop starts `chmod` twice per new file: for the file and for its checksum. The raw
# file system writes no checksum and starts no process; a case of three steps would otherwise start 41.
_FILE_SYSTEM_CONF: Mapping[str, str] = {
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    # Otherwise a file system cached by another session is used.
    "fs.file.impl.disable.cache": "true",
}
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - folders in it are made by tempfile, for this user alone


def open_tests(conf: Mapping[str, object], log: Path | None = None) -> SparkSession:
    """Open the session of all tests, with the startup-only settings of `conf`, which override the defaults.

    Spark always runs locally, whatever master a pipeline names. Raises NotReady if Java or a jar is missing or the
    JVM does not start.
    """
    startup_conf = {
        key: value for key, value in conf.items() if is_startup_setting(key) and key != "spark.master"
    }
    return open_session("millstream test", {**_STARTUP_CONF, **startup_conf}, log)


@contextmanager
def open_case_session(spark: SparkSession, pipeline: Pipeline) -> Iterator[SparkSession]:
    """Open an isolated session with the settings for small tests, then the pipeline's settings.

    Startup-only settings of the pipeline have no effect, nor has one that the harness needs.
    """
    with separate_session(spark, {**_CASE_CONF, **pipeline.spark, **_HARNESS_CONF}) as session:
        # RocksDB writes its files through Hadoop's own local file system, which must not be replaced.
        files = {} if STORE in pipeline.spark else _FILE_SYSTEM_CONF
        for key, value in files.items():
            session.conf.set(key, value)
        yield session


def apply_later_settings(session: SparkSession, before: Pipeline, after: Pipeline) -> None:
    """Apply the settings of a later pipeline version to a case's session; a query uses them from its next start."""
    for key in {**before.spark, **after.spark}:
        value = after.spark.get(key, _CASE_CONF.get(key))
        if key in _HARNESS_CONF or not session.conf.isModifiable(key):
            continue
        if value is None:
            session.conf.unset(key)
        else:
            session.conf.set(key, value if isinstance(value, bool | int | str) else str(value))


@contextmanager
def create_case_folder() -> Iterator[Path]:
    """Create a temporary folder for one case, in memory if the machine has /dev/shm."""
    parent = _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="millstream-test-", dir=parent) as folder:
        yield Path(folder)
