"""The stack's Spark cluster: a standalone master and its workers on 127.0.0.1, for their own user only."""

from __future__ import annotations

import base64
import json
import secrets
import shutil
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from millstream.checkpoint.private_folder import make_private
from millstream.devstack.ports import LOCAL
from millstream.devstack.servers.registration import Registration
from millstream.devstack.supervisor.server_spec import ServerSpec
from millstream.devstack.supervisor.state import SPARK_MASTER
from millstream.diagnostics.failure import InvalidInput
from millstream.spark.jars.ivy_download import pyspark_folder
from millstream.spark.java_discovery import find_java

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.devstack.supervisor.state import Home

MOST_WORKERS = 8
WORKERS = tuple(f"spark-worker-{number}" for number in range(1, MOST_WORKERS + 1))
SERVERS = (SPARK_MASTER, *WORKERS)

# Neither does more than start executors and count them.
_JVM = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Djava.awt.headless=true")
_FOLDER, _SIZE, _SECRET = "spark", "size.json", "secret"
# Spark's own launcher script sets the variable, without which a worker looks for a build of Spark.
_SCALA = "2.13"
# The web pages of master and workers show logs and can end applications. Spark has no switch for them, but a filter
# that wants a signed token, which nobody has: the key is drawn for each start.
_PAGES = "org.apache.spark.ui.JWSFilter"
REGISTRATION = Registration(
    SPARK_MASTER, "Started daemon with process name", "Successfully registered with master"
)


@dataclass(frozen=True)
class ClusterSize:
    """The number of workers, and what each has for executors: cores, and memory in MiB."""

    workers: int
    cores: int = 1
    memory: int = 1024


def write_size(home: Home, size: ClusterSize) -> None:
    """Store the size of the cluster, and draw its secret unless it has one. Call it before `prepare`."""
    make_private(home / _FOLDER)
    home.write(f"{_FOLDER}/{_SIZE}", asdict(size))
    if not (home / _FOLDER / _SECRET).is_file():
        home.write_private(f"{_FOLDER}/{_SECRET}", secrets.token_hex(32))


def read_size(home: Home) -> ClusterSize:
    """Return the size with which the cluster was started. Raises InvalidInput if there never was one."""
    try:
        return ClusterSize(**json.loads((home / _FOLDER / _SIZE).read_text()))
    except FileNotFoundError:
        raise InvalidInput(
            "this stack has no Spark cluster", "start one: millstream up --workers 2"
        ) from None


def session_settings(home: Home) -> dict[str, str]:
    """Return the settings with which a driver uses the cluster: an executor for each worker, and the secret."""
    size = read_size(home)
    return {
        "spark.authenticate": "true",
        "spark.authenticate.secret.file": str(home / _FOLDER / _SECRET),
        "spark.executor.cores": str(size.cores),
        "spark.executor.memory": f"{size.memory}m",
        "spark.cores.max": str(size.workers * size.cores),
    }


def prepare(home: Home, name: str, port: int) -> ServerSpec:
    """Return the spec of the master, which listens at `port`, or of a worker that registers there."""
    size = read_size(home)
    common = ("--host", LOCAL, "--webui-port", "0", "--properties-file", str(_write_properties(home)))
    if name == SPARK_MASTER:
        words: tuple[str, ...] = ("org.apache.spark.deploy.master.Master", "--port", str(port), *common)
        return _server(home, name, words, {})
    folder = home / _FOLDER / name
    # Executors of former starts left their logs and copies of jars here.
    shutil.rmtree(folder, ignore_errors=True)
    make_private(folder)
    offer = ("--cores", str(size.cores), "--memory", f"{size.memory}m", "--work-dir", str(folder / "work"))
    words = ("org.apache.spark.deploy.worker.Worker", *common, *offer, f"spark://{LOCAL}:{port}")
    # Relative to the folder of the stack, in which servers are started: Spark splits the variable at a comma.
    return _server(home, name, words, {"SPARK_LOCAL_DIRS": f"{_FOLDER}/{name}/local"})


def _server(home: Home, name: str, words: tuple[str, ...], environment: dict[str, str]) -> ServerSpec:
    java, package = find_java(), pyspark_folder()
    run = (str(java.binary), *_JVM, "-cp", f"{package / 'jars'}/*", *words)
    variables = {
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": str(package),
        "SPARK_SCALA_VERSION": _SCALA,
        # Every listener of these processes, and of the executors that they start, binds to loopback.
        "SPARK_LOCAL_IP": LOCAL,
        # Settings of the user's own cluster are not for this one.
        "SPARK_CONF_DIR": str(home / _FOLDER),
        **environment,
    }
    return ServerSpec(name, run, str(home.log(name)), environment=variables)


def _write_properties(home: Home) -> Path:
    """Write the settings of master and workers, among them the secret that each driver must have too."""
    key = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
    lines = {
        "spark.authenticate": "true",
        "spark.authenticate.secret": (home / _FOLDER / _SECRET).read_text(),
        "spark.master.rest.enabled": "false",
        "spark.ui.killEnabled": "false",
        "spark.ui.filters": _PAGES,
        f"spark.{_PAGES}.param.secretKey": key,
    }
    name = f"{_FOLDER}/cluster.properties"
    home.write_private(name, "".join(f"{key}={value}\n" for key, value in lines.items()))
    return home / name
