"""Servers of a project whose folder has a name with a comma, a space and other letters than ASCII's."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from millstream.devstack.servers import hdfs, kafka, s3, spark_cluster
from millstream.devstack.supervisor.state import NAME_NODE, Home
from millstream.spark.java_discovery import Java

WORKER = "spark-worker-1"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A stack without Java and without jars."""
    java = Java(Path("/java"), 21, "the test")
    for module in (hdfs, kafka, s3, spark_cluster):
        monkeypatch.setattr(module, "find_java", lambda: java)
    for module in (hdfs, kafka, s3):
        monkeypatch.setattr(module, "ensure_jars", lambda *_: [Path("/jars/server.jar")])
    monkeypatch.setattr(kafka, "compile_access_check", lambda *_: None)
    monkeypatch.setattr(s3, "compile_class", lambda *_: Path("/class"))
    home = Home(tmp_path / "größe, a")
    home.make()
    return home


@pytest.fixture
def formats(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], Path]]:
    """The commands that format a server's folder, with the folders in which they run."""
    commands: list[tuple[list[str], Path]] = []

    def run(command: list[str], *, cwd: Path, **_: Any) -> subprocess.CompletedProcess[str]:
        commands.append((command, cwd))
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    return commands


def test_the_broker_gets_its_folder_relative_to_that_of_the_stack(
    home: Home, formats: list[tuple[list[str], Path]]
) -> None:
    server = kafka.prepare(home, 9092, 9093, print)

    assert "\nlog.dirs=kafka\n" in (home / "kafka.properties").read_text("ascii")
    assert "-Dlog4j2.configurationFile=kafka-log4j2.properties" in server.argv
    assert [cwd for _, cwd in formats] == [home.path]


def test_the_s3_server_gets_its_folder_relative_to_that_of_the_stack(home: Home) -> None:
    s3.prepare(home, 9000, print)

    assert "\njclouds.filesystem.basedir=s3/data\n" in (home / "s3/s3proxy.properties").read_text("ascii")


def test_nodes_of_hdfs_get_their_folders_relative_to_that_of_the_stack(
    home: Home, formats: list[tuple[list[str], Path]]
) -> None:
    hdfs.prepare(home, NAME_NODE, 8020, print)

    configuration = (home / "hdfs" / f"{NAME_NODE}.conf" / "hdfs-site.xml").read_text("ascii")
    assert "<name>dfs.namenode.name.dir</name><value>hdfs/names</value>" in configuration
    assert "<name>dfs.datanode.data.dir</name><value>hdfs/data</value>" in configuration
    assert [cwd for _, cwd in formats] == [home.path]


def test_a_worker_gets_its_folder_relative_to_that_of_the_stack(home: Home) -> None:
    spark_cluster.write_size(home, spark_cluster.ClusterSize(1))

    server = spark_cluster.prepare(home, WORKER, 7077)

    assert server.environment["SPARK_LOCAL_DIRS"] == f"spark/{WORKER}/local"
