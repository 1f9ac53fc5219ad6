"""What tests share: one Spark session, started when a test first asks for it, and a fresh checkpoint."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.devstack.stack import down, up
from millstream.spark.session import open_session, shut_down_jvm
from millstream.spec.secrets.redaction import REDACTOR
from small_batches import SMALL_BATCHES, changed_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from millstream.devstack.supervisor.state import Endpoints

# `nohup` has SIGHUP ignored, and whatever a test starts would ignore it too.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# No test leaves a process behind that trains a class-data archive.
os.environ.setdefault("MILLSTREAM_ARCHIVE", "use")

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
UNVERIFIED_CLASSES = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
PLAIN_JVM = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m {UNVERIFIED_CLASSES}"
INTERPRETED_JVM = tuple(f"-D{key}={value}" for key, value in INTERPRETED.items())

# The first compiler and the plainest collector: the JVM of a test, and of a process that a test starts, lives too
# briefly to gain by more, but for those of the long acceptance run. With the first compiler alone a JVM has 48 MB for
# its code, which some fifty tests fill; it then drops and compiles without end. To verify the classes of Spark's jars
# takes a sixth of the CPU of a JVM without an archive of them, as an executor is. Generated code takes longer to
# compile than it saves on batches of a few rows; see `compiled`. `java` itself reads the variable.
if "MILLSTREAM_EVENTS" not in os.environ:
    os.environ.setdefault("JDK_JAVA_OPTIONS", " ".join((PLAIN_JVM, *INTERPRETED_JVM)))


# Folders and files in the order in which the workers get them: those first that start no JVM, beside which
# `make test` creates the archive of classes for the others; then those that wait or start processes of their own,
# beside which others compute; and the many small files last, so that all workers end together.
ORDER = (
    "unit", "meta", "pipeline", "cli", "proof", "acceptance", "cluster/test_s3_checkpoints.py", "cluster",
    "packaging", "recovery", "examples", "conformance", "kafka", "devstack", "spark/restarts", "spark/testing",
    "spark", "page",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files of long tests first; with `--no-loadscope-reorder` the workers get them in this order."""
    here = Path(__file__).parent
    places = [here / place for place in ORDER]

    def rank(item: pytest.Item) -> int:
        path = item.path
        return next((rank for rank, place in enumerate(places) if path.is_relative_to(place)), len(places))

    ranks = {path: rank(item) for path, item in {item.path: item for item in items}.items()}
    items.sort(key=lambda item: ranks[item.path])


HADOOP_LEFT_OUT = r"^(yarn|dfs|mapreduce|fs\.s3a|fs\.azure|fs\.abfs|hadoop\.security|hadoop\.http|ipc)\."
_sessions: list[SparkSession] = []


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session on two cores for all tests of the run, without generated code; see `compiled`."""
    conf = {
        "spark.master": "local[2]",
        "spark.driver.memory": "2g",
        # Fewer collections: nearly all garbage of a test is gone when the next one begins.
        "spark.driver.defaultJavaOptions": "-Xms1g -Xmn400m -XX:MetaspaceSize=256m",
        "spark.sql.shuffle.partitions": 2,
        **INTERPRETED,
    }
    session = open_session("tests", conf, tmp_path_factory.mktemp("spark") / "spark.log")
    leave_out_hadoop_defaults(session)
    _sessions.append(session)
    yield session
    _sessions.clear()
    session.stop()
    shut_down_jvm()


def leave_out_hadoop_defaults(spark: SparkSession) -> None:
    """Drop Hadoop's defaults for what no test has: a tenth of a small batch is spent on copying them to its tasks."""
    java = spark._jvm
    assert java is not None
    # Brings the defaults of MapReduce and YARN, which would otherwise come with the first write.
    java.org.apache.hadoop.mapred.JobConf()
    conf = spark._jsc.hadoopConfiguration()
    for key in list(conf.getValByRegex(HADOOP_LEFT_OUT)):
        conf.unset(key)


@pytest.fixture(scope="module")
def compiled(spark: SparkSession) -> Iterator[None]:
    """Generated code, as a pipeline has it: for tests of what the rows are that an expression of ours gives."""
    for key, value in COMPILED.items():
        spark.conf.set(key, value)
    yield
    for key, value in INTERPRETED.items():
        spark.conf.set(key, value)


@pytest.fixture(scope="module")
def interpreted(spark: SparkSession) -> None:
    """No generated code, said by name: the session has none unless a test asks for `compiled`."""


@pytest.fixture(scope="module")
def small_batches(spark: SparkSession) -> Iterator[None]:
    """Settings for batches of a few rows, for tests that are not about partitions or the checkpoint's files."""
    with changed_settings(spark, SMALL_BATCHES):
        yield


@pytest.fixture(autouse=True)
def _no_secrets_of_other_tests() -> Iterator[None]:
    """A secret is hidden for the life of a process; what is one in a test may be any word in the next."""
    yield
    REDACTOR.clear()


@pytest.fixture(scope="module", autouse=True)
def _no_views_left() -> Iterator[None]:
    """Files of tests come in any order; none finds the temporary views of another."""
    yield
    for session in _sessions:
        for view in session.sql("SHOW VIEWS").collect():
            if view.isTemporary:
                session.catalog.dropTempView(view.viewName)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A folder of its own for a query's checkpoint; not made yet, as Spark wants to make it."""
    return tmp_path / "checkpoint"


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoints]:
    """A broker and a database for all tests of the run; they end with it."""
    folder = tmp_path_factory.mktemp("stack")
    yield up(folder, attached=True)
    down(folder)
