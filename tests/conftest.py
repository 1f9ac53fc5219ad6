"""What tests share: one Spark session, started when a test first asks for it, and a fresh checkpoint."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.devstack.stack import down, up
from millstream.runtime.session import end, open_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from millstream.devstack.state import Endpoints

# No test leaves a process behind that trains a class-data archive.
os.environ.setdefault("MILLSTREAM_ARCHIVE", "use")

# Folders whose tests stand on servers and on Spark's threads, where a loaded machine may be too slow for a wait. One
# that fails runs once more and is listed as rerun. Not `proof` and `recovery`: what a kill does must hold each time.
SERVED = {"acceptance", "conformance", "devstack", "examples", "kafka", "page", "scripts", "spark"}

# The first compiler and the plainest collector: the JVM of a test, and of a process that a test starts, lives too
# briefly to gain by more, but for those of the long acceptance run. `java` itself reads the variable.
if "MILLSTREAM_EVENTS" not in os.environ:
    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let tests on servers run twice."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and item.path.relative_to(here).parts[0] in SERVED:
            item.add_marker(pytest.mark.flaky(reruns=1))


_sessions: list[SparkSession] = []


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session on two cores for all tests of the run."""
    conf = {
        "spark.master": "local[2]",
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": 2,
    }
    session = open_session("tests", conf, tmp_path_factory.mktemp("spark") / "spark.log")
    _sessions.append(session)
    yield session
    _sessions.clear()
    session.stop()
    end()


@pytest.fixture(scope="module")
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Batches of a few rows without generated code, which takes longer to compile than it saves.

    For tests of what is written and remembered; what the rows are is tested with it.
    """
    without = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    for key, value in without.items():
        spark.conf.set(key, value)
    yield
    for key in without:
        spark.conf.unset(key)


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
