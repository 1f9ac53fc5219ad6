"""The stack's HDFS: one name node and one data node on 127.0.0.1, Hadoop's own servers with the client of PySpark.

HDFS believes the user name that a client gives, so that every user of this machine can read and change its files.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from millstream.checkpoint.private_folder import make_private
from millstream.devstack.ports import LOCAL
from millstream.devstack.servers.registration import Registration
from millstream.devstack.supervisor.server_spec import ServerSpec
from millstream.devstack.supervisor.state import NAME_NODE
from millstream.diagnostics.failure import NotReady
from millstream.spark.jars.ivy_download import pyspark_folder
from millstream.spark.jars.jar_cache import ensure_jars
from millstream.spark.java_discovery import find_java

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millstream.devstack.supervisor.state import Home

DATA_NODE = "hdfs-datanode"
SERVERS = (NAME_NODE, DATA_NODE)

_FOLDER = "hdfs"
_CLASSES = {
    NAME_NODE: "org.apache.hadoop.hdfs.server.namenode.NameNode",
    DATA_NODE: "org.apache.hadoop.hdfs.server.datanode.DataNode",
}
# Neither does more here than keep the files of a few queries.
_JVM = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Djava.awt.headless=true")
# Only a line of the log tells that a data node may be written to. Spark's defaults log nothing of Hadoop's.
_LOGGING = """\
rootLogger.level = info
rootLogger.appenderRef.stdout.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_OUT
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %c: %m%n
"""
REGISTRATION = Registration(NAME_NODE, "STARTUP_MSG: Starting DataNode", "successfully registered with NN")


def prepare(home: Home, name: str, port: int, report: Callable[[str], None]) -> ServerSpec:
    """Return the spec of the name node, which listens at `port`, or of its data node."""
    # Both nodes are prepared at one time, and one of them tells of a download.
    (jar,) = ensure_jars("hdfs", report if name == NAME_NODE else None)
    folder = home / _FOLDER
    make_private(folder)
    conf = _write_configuration(folder, name, port)
    java = find_java()
    class_path = f"{conf}:{jar}:{pyspark_folder() / 'jars'}/*"
    command = (str(java.binary), *_JVM, "-cp", class_path, _CLASSES[name])
    if name == NAME_NODE and not (folder / "names" / "current").is_dir():
        _format(command, home)
    variables = {"JAVA_HOME": str(java.home), "HADOOP_CONF_DIR": str(conf)}
    return ServerSpec(name, command, str(home.log(name)), environment=variables)


def _format(command: tuple[str, ...], home: Home) -> None:
    """Create an empty file system, as `hdfs namenode -format` does."""
    done = subprocess.run(
        [*command, "-format", "-nonInteractive"], capture_output=True, text=True, check=False, cwd=home.path
    )
    if done.returncode:
        last = (done.stdout + done.stderr).strip().splitlines()[-1:]
        raise NotReady(
            f"HDFS could not be created: {' '.join(last)}", "delete .millstream/stack/hdfs and try again"
        )


def _write_configuration(folder: Path, name: str, port: int) -> Path:
    """Write the configuration of one node. Each has its own folder, because both are prepared at one time."""
    settings = {
        "fs.defaultFS": f"hdfs://{LOCAL}:{port}",
        "dfs.namenode.name.dir": f"{folder.name}/names",
        "dfs.datanode.data.dir": f"{folder.name}/data",
        "dfs.replication": "1",
        "dfs.namenode.http-address": f"{LOCAL}:0",
        "dfs.datanode.address": f"{LOCAL}:0",
        "dfs.datanode.http.address": f"{LOCAL}:0",
        "dfs.datanode.ipc.address": f"{LOCAL}:0",
        "dfs.datanode.hostname": LOCAL,
        "dfs.namenode.safemode.extension": "0",
    }
    conf = folder / f"{name}.conf"
    # The nodes want the folders of their pages, which the jar does not have.
    for pages in ("hdfs", "datanode"):
        (conf / "webapps" / pages).mkdir(parents=True, exist_ok=True)
    rows = "".join(
        f"<property><name>{key}</name><value>{value}</value></property>" for key, value in settings.items()
    )
    for file in ("core-site.xml", "hdfs-site.xml"):
        (conf / file).write_text(f"<configuration>{rows}</configuration>", encoding="utf-8")
    (conf / "log4j2.properties").write_text(_LOGGING, encoding="utf-8")
    return conf
