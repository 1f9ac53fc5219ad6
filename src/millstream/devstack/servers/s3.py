"""The stack's S3-compatible server: S3Proxy on 127.0.0.1, which stores objects as files and asks for a key."""

from __future__ import annotations

import json
import os
import secrets
from typing import TYPE_CHECKING

from millstream.checkpoint.private_folder import make_private
from millstream.devstack.ports import LOCAL
from millstream.devstack.servers.compiled_class import ServerClass, compile_class
from millstream.devstack.supervisor.server_spec import ServerSpec
from millstream.devstack.supervisor.state import S3_BUCKET, S3_SERVER
from millstream.spark.jars.jar_cache import ensure_jars
from millstream.spark.java_discovery import find_java
from millstream.spec.location import S3_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millstream.devstack.supervisor.state import Home

_FOLDER, _KEY = "s3", "key.json"
_CLASS = ServerClass(
    name="millstream.LocalS3",
    folder="local-s3",
    title="the program of the S3 server",
    alternative="install PySpark again, or use another S3 server: name it in the section 'spark' of the spec",
)
_JVM = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Djava.awt.headless=true")
# S3Proxy's newer store, filesystem-nio2, answers that the folder `a/` is also an object `a`, which Hadoop takes for a
# file. This one keeps them apart.
_STORE = "filesystem"
_LOGGING = """\
<configuration>
  <appender name="stdout" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d %p %c: %m%n</pattern></encoder>
  </appender>
  <root level="warn"><appender-ref ref="stdout"/></root>
</configuration>
"""


def prepare(home: Home, port: int, report: Callable[[str], None]) -> ServerSpec:
    """Return the spec of the server, which listens at `port`. Draws its key once, and creates the bucket."""
    jars = ensure_jars("s3-server", report)
    folder = home / _FOLDER
    make_private(folder)
    # A bucket of this store is a folder.
    (folder / "data" / S3_BUCKET).mkdir(parents=True, exist_ok=True)
    (folder / "logback.xml").write_text(_LOGGING, encoding="utf-8")
    java = find_java()
    program = compile_class(_CLASS, java, jars, report)
    command = (
        str(java.binary),
        *_JVM,
        f"-Dlogback.configurationFile={folder / 'logback.xml'}",
        "-cp",
        os.pathsep.join(map(str, [program, *jars])),
        _CLASS.name,
        str(_write_properties(home, port)),
    )
    return ServerSpec(S3_SERVER, command, str(home.log(S3_SERVER)), environment={"JAVA_HOME": str(java.home)})


def session_settings(home: Home) -> dict[str, str]:
    """Return the settings with which Spark reaches the stack's bucket, and no other bucket. They contain the key."""
    key = _read_key(home)
    if not key:
        return {}
    of_bucket = {
        "endpoint": f"http://{LOCAL}:{home.addresses().get(S3_SERVER, 0)}",
        "endpoint.region": "us-east-1",
        "path.style.access": "true",
        "access.key": key["access"],
        "secret.key": key["secret"],
        "aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    }
    return {f"{S3_SETTINGS}bucket.{S3_BUCKET}.{name}": value for name, value in of_bucket.items()}


def _read_key(home: Home) -> dict[str, str]:
    try:
        key = json.loads((home / _FOLDER / _KEY).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return {"access": str(key["access"]), "secret": str(key["secret"])}


def _write_properties(home: Home, port: int) -> Path:
    """Write the configuration, with the key, for this user alone."""
    key = _read_key(home)
    if not key:
        key = {"access": secrets.token_hex(10).upper(), "secret": secrets.token_hex(20)}
        home.write(f"{_FOLDER}/{_KEY}", key)
    lines = {
        "s3proxy.endpoint": f"http://{LOCAL}:{port}",
        "s3proxy.authorization": "aws-v4",
        "s3proxy.identity": key["access"],
        "s3proxy.credential": key["secret"],
        # Amazon's SDK sends a checksum with a request that deletes several objects.
        "s3proxy.ignore-unknown-headers": "true",
        "jclouds.provider": _STORE,
        # Relative to the folder of the stack, in which servers are started: a property file is Latin-1.
        "jclouds.filesystem.basedir": f"{_FOLDER}/data",
        # The store itself asks for none, and S3Proxy for any.
        "jclouds.identity": "local",
        "jclouds.credential": "local",
    }
    name = f"{_FOLDER}/s3proxy.properties"
    home.write_private(name, "".join(f"{key}={value}\n" for key, value in lines.items()))
    return home / name
