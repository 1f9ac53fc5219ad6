"""A Spark master and two workers beside the broker and the database, and projects that run on them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from acceptance.oracle import STREAMS
from acceptance.project import Project, adapt, database
from cluster.orders import SIZE, put_checkpoints_in, put_on_cluster
from cluster.s3_projects import S3Process
from millstream.devstack.servers import hdfs as hdfs_servers
from millstream.devstack.servers.spark_cluster import SERVERS
from millstream.devstack.servers.topics import create_topics
from millstream.devstack.stack import bucket_settings, stop, up
from millstream.devstack.supervisor.state import S3_SERVER
from millstream.spark.settings import S3_CLIENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.devstack.supervisor.state import Endpoints

SHOP = Path(__file__).parent / "shop"
EXAMPLE = Path(__file__).parents[2] / "examples" / "ecommerce"


@pytest.fixture(scope="session")
def cluster(stack: Endpoints) -> Iterator[Endpoints]:
    yield up(stack.folder, cluster=SIZE, attached=True)
    for server in SERVERS[: SIZE.workers + 1]:
        stop(stack.folder, server)


@pytest.fixture
def shop(cluster: Endpoints, tmp_path: Path) -> Iterator[Project]:
    """A project with topics of its own, in which a processor, a Python view and a module next to it are used."""
    folder, prefix = tmp_path / "shop", f"{tmp_path.name}-"
    folder.mkdir()
    for file in SHOP.iterdir():
        if file.is_file():
            (folder / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    put_on_cluster(folder, cluster, **{"spark.cores.max": f"${{CORES:-{SIZE.workers * SIZE.cores}}}"})
    create_topics(cluster.kafka, {f"{prefix}orders": {"partitions": "2"}, f"{prefix}priced": {}})
    project = Project(folder, cluster.kafka, database(cluster.postgres, "millstream"), prefix)
    yield project
    project.close()


@pytest.fixture(params=["hdfs", "s3"])
def ecommerce(cluster: Endpoints, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Project]:
    """A copy of the example with topics and a database of its own, whose spec names the cluster.

    Its checkpoints are on HDFS or on S3. In test_cluster.py they are in a folder of this machine.
    """
    place = request.param
    folder, prefix, name = tmp_path / "ecommerce", f"cluster-{place}-", f"ecommerce_on_{place}"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns(".millstream", "lake"))
    adapt(folder, prefix)
    put_on_cluster(folder, cluster, **{"spark.master": cluster.spark})
    conf = request.getfixturevalue("conf") if place == "s3" else {}
    root = request.getfixturevalue("bucket" if place == "s3" else "hdfs")
    put_checkpoints_in(folder, f"{root}/{tmp_path.name}/checkpoints", **conf)
    create_topics(cluster.kafka, {f"{prefix}{stream}": {} for stream in STREAMS})
    with psycopg.connect(cluster.postgres, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    project = Project(folder, cluster.kafka, database(cluster.postgres, name), prefix, is_remote=True)
    yield project
    project.close()


@pytest.fixture(scope="session")
def hdfs(stack: Endpoints) -> Iterator[str]:
    yield up(stack.folder, servers=(), with_hdfs=True, attached=True).hdfs
    for server in reversed(hdfs_servers.SERVERS):
        stop(stack.folder, server)


@pytest.fixture(scope="session")
def bucket(stack: Endpoints) -> Iterator[str]:
    yield up(stack.folder, servers=(), with_s3=True, attached=True).s3
    stop(stack.folder, S3_SERVER)


@pytest.fixture
def root(bucket: str, tmp_path: Path) -> str:
    """A folder of its own in the bucket."""
    return f"{bucket}/{tmp_path.name}"


@pytest.fixture(scope="session")
def conf(stack: Endpoints, bucket: str) -> dict[str, str]:
    """The settings with which Spark reaches the bucket."""
    assert bucket
    return {**S3_CLIENT, **bucket_settings(stack.folder)}


@pytest.fixture(scope="session")
def s3_process(conf: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Process]:
    process = S3Process(conf, tmp_path_factory.mktemp("s3"))
    yield process
    process.close()
