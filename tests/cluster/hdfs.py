"""An HDFS of one name node and one data node on 127.0.0.1: Hadoop's own servers, with the Hadoop that PySpark has."""

from __future__ import annotations

import signal
import socket
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

from acceptance.project import until
from millstream.spark import cache_folder
from millstream.spark.jars.ivy_download import download_jars, pyspark_folder
from millstream.spark.jars.jar_cache import Jar, digest
from millstream.spark.java_discovery import find_java
from millstream.spark.parent_death import make_parent_death_hook

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Its client is in PySpark; this jar has the servers, in the version of PySpark's Hadoop.
SERVERS = Jar(
    "org.apache.hadoop:hadoop-client-minicluster:3.5.0",
    56006450,
    "06772d24529e59939915979b3edba204d367750ef7dc5120411f35221dd4818c",
)
NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"


def fetch_servers() -> Path:
    """The jar in the user's cache, downloaded unless it is there."""
    jar = cache_folder.create_folder("jars") / SERVERS.file
    if not jar.is_file() or digest(jar) != SERVERS.sha256:
        with download_jars([SERVERS.at], jar.parent, SERVERS.size, lambda _: None) as staged:
            assert digest(staged / SERVERS.file) == SERVERS.sha256
            (staged / SERVERS.file).replace(jar)
    return jar


@contextmanager
def run_hdfs(folder: Path) -> Iterator[str]:
    """Start both nodes with their data in `folder`, and give the address of the file system."""
    address = f"hdfs://127.0.0.1:{_free_port()}"
    java = _write_configuration(folder, address)
    subprocess.run([*java, NAME_NODE, "-format", "-nonInteractive"], check=True, capture_output=True)
    nodes = []
    try:
        for node in (NAME_NODE, DATA_NODE):
            log = folder / f"{node.rpartition('.')[2]}.log"
            with log.open("wb") as output:
                nodes.append(
                    subprocess.Popen(
                        [*java, node],
                        stdout=output,
                        stderr=output,
                        preexec_fn=make_parent_death_hook(signal.SIGKILL),
                    )
                )
        # A file system without a data node answers, and takes no file.
        until(lambda: list((folder / "data").glob("current/BP-*")), 120, "the data node has not registered")
        yield address
    finally:
        for process in nodes:
            process.kill()
            process.wait()


def _write_configuration(folder: Path, address: str) -> list[str]:
    """Write Hadoop's configuration, and give the command of a node without its class."""
    settings = {
        "fs.defaultFS": address,
        "dfs.namenode.name.dir": (folder / "names").as_uri(),
        "dfs.datanode.data.dir": (folder / "data").as_uri(),
        "dfs.replication": "1",
        "dfs.namenode.http-address": "127.0.0.1:0",
        "dfs.datanode.address": "127.0.0.1:0",
        "dfs.datanode.http.address": "127.0.0.1:0",
        "dfs.datanode.ipc.address": "127.0.0.1:0",
        "dfs.datanode.hostname": "127.0.0.1",
        "dfs.namenode.safemode.extension": "0",
    }
    conf = folder / "conf"
    # The nodes want the folders of their pages, which the jar does not have.
    for pages in ("hdfs", "datanode"):
        (conf / "webapps" / pages).mkdir(parents=True)
    rows = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items()
    )
    for file in ("core-site.xml", "hdfs-site.xml"):
        (conf / file).write_text(f"<configuration>{rows}</configuration>", encoding="utf-8")
    class_path = f"{conf}:{fetch_servers()}:{pyspark_folder() / 'jars'}/*"
    return [
        str(find_java().binary),
        "-Xmx256m",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-cp",
        class_path,
    ]


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
