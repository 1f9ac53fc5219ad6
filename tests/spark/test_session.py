"""A session as `open_session` starts it: what it can do, where it listens, what it says."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.functions import udf

from millstream.spark import jvm_launch, session
from millstream.spark.jars.ivy_download import pyspark_folder
from millstream.spark.java_discovery import find_java
from millstream.spark.settings import OPTIMISING_COMPILER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}

RUN = """
import sys, pathlib
from millstream.spark.session import open_session
spark = open_session("alone", {"spark.driver.memory": "512m"}, pathlib.Path(sys.argv[1]))
spark.sparkContext.setLogLevel("INFO")
print(spark.range(3).count(), flush=True)
jvm = spark._jvm.java.lang.ProcessHandle.current().pid()
print(jvm, flush=True)
print("pandas" in sys.modules, flush=True)
sys.stdin.readline()
"""


def test_a_delta_table_can_be_written_and_read(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(10).write.format("delta").save(str(tmp_path / "table"))

    assert spark.read.format("delta").load(str(tmp_path / "table")).count() == 10


def test_the_kafka_source_loads_without_a_broker(spark: SparkSession) -> None:
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "127.0.0.1:1")

    assert "offset" in reader.option("subscribe", "none").load().columns


def test_the_postgres_driver_is_there(spark: SparkSession) -> None:
    assert spark._jvm.java.lang.Class.forName("org.postgresql.Driver") is not None


def test_a_python_function_runs_on_this_interpreter(spark: SparkSession) -> None:
    # PySpark's own choice is the first python3 on the PATH, which may lack what the function imports.
    interpreter = udf(lambda _: sys.executable, "string")

    rows = spark.range(1).select(interpreter("id")).collect()

    assert rows[0][0] == sys.executable


def test_a_second_call_gives_the_same_session(spark: SparkSession) -> None:
    assert session.open_session("again", {"spark.sql.shuffle.partitions": 2}) is spark


def test_the_applied_settings_can_be_read(spark: SparkSession) -> None:
    # What stands in brackets is told like a setting and is none.
    settings = [setting for setting in session.applied_settings() if not setting.key.startswith("(")]
    differing = {setting.key for setting in settings if spark.conf.get(setting.key) != setting.value}

    # Spark gives that path back as a URI. A script that another test checks may name the shared session anew, and a
    # spec may ask for another JVM, which has no effect any more.
    assert differing <= {
        "spark.sql.warehouse.dir",
        "spark.app.name",
        "spark.driver.memory",
        "spark.driver.defaultJavaOptions",
    }


def test_every_listener_of_this_process_and_its_jvm_is_on_loopback(spark: SparkSession) -> None:
    spark.range(1).foreach(lambda _: None)  # Python workers listen too

    addresses = listening({os.getpid(), *children(os.getpid())})

    assert addresses
    assert addresses <= LOOPBACK


def test_the_jvms_options_are_those_of_sparks_own_launcher() -> None:
    command = [find_java().binary, "-cp", f"{pyspark_folder()}/jars/*", "org.apache.spark.launcher.Main"]
    result = subprocess.run(
        [*command, "org.apache.spark.deploy.SparkSubmit", "pyspark-shell"],
        capture_output=True,
        text=True,
        check=True,
        env={"SPARK_HOME": str(pyspark_folder()), "SPARK_SCALA_VERSION": "2.13"},
    )

    words = result.stdout.split("\0")
    options = [word for word in words if word.startswith(("-XX:", "--", "-D"))]
    assert [word for word in options if word != "--add-modules=jdk.incubator.vector"] == list(
        jvm_launch.OPTIONS
    )


def test_java_knows_the_limits_of_its_optimising_compiler() -> None:
    # It ignores an option that it does not know, so a misspelt one would have no effect.
    options = dict(option.removeprefix("-XX:").split("=") for option in OPTIMISING_COMPILER.split())

    result = subprocess.run(
        [find_java().binary, *OPTIMISING_COMPILER.split(), "-XX:+PrintFlagsFinal", "-version"],
        capture_output=True,
        text=True,
        check=True,
        env={},
    )

    flags = {words[1]: words[3] for line in result.stdout.splitlines() if len(words := line.split()) > 3}
    assert len(options) == 4
    assert {name: flags[name] for name in options} == options


@pytest.fixture
def alone(tmp_path: Path) -> subprocess.Popen[str]:
    """A Python of its own with a session, which ends when it reads a line."""
    return subprocess.Popen(
        [sys.executable, "-c", RUN, str(tmp_path / "spark.log")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        start_new_session=True,
    )


def test_sparks_log_is_in_its_file_and_not_on_the_terminal(
    alone: subprocess.Popen[str], tmp_path: Path
) -> None:
    out, err = alone.communicate("\n", timeout=200)

    rows, _, has_loaded_pandas = out.splitlines()
    assert (rows, err) == ("3", "")
    # 1.5 CPU seconds at each start, for nothing.
    assert has_loaded_pandas == "False"
    assert "SparkContext" in (tmp_path / "spark.log").read_text()
    assert (tmp_path / "spark.log").stat().st_mode & 0o077 == 0
    assert [path.name for path in tmp_path.iterdir()] == ["spark.log"]


def test_an_interrupt_of_the_group_leaves_the_jvm_to_python_and_a_kill_ends_both(
    alone: subprocess.Popen[str],
) -> None:
    assert alone.stdout
    alone.stdout.readline()
    jvm = int(alone.stdout.readline())
    for gentle in (signal.SIGINT, signal.SIGTERM):
        os.kill(jvm, gentle)
    ended = os.pidfd_open(jvm)
    assert not has_ended(ended, within=0.5)

    alone.kill()
    alone.communicate()

    assert has_ended(ended, within=20)
    os.close(ended)


def has_ended(process: int, within: float) -> bool:
    """Does the process behind the descriptor end within so many seconds?"""
    import select

    return bool(select.select([process], [], [], within)[0])


def children(process: int) -> set[int]:
    """All processes below one."""
    actual: set[int] = set()
    for task in Path(f"/proc/{process}/task").iterdir():
        # A thread may end between being listed and being looked at.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for child in map(int, (task / "children").read_text().split()):
                actual |= {child, *children(child)}
    return actual


def listening(processes: set[int]) -> set[str]:
    """The addresses, in the kernel's hexadecimal, on which the processes accept connections."""
    sockets = set()
    for process in processes:
        for descriptor in Path(f"/proc/{process}/fd").iterdir():
            try:
                sockets.add(str(descriptor.readlink()))
            except FileNotFoundError:
                continue
    addresses = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                addresses.add(fields[1].partition(":")[0])
    return addresses
