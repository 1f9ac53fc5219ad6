"""Start the JVM that Spark's driver lives in, quietly, and end it with this process."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import NotReady
from millstream.runtime.ivy import pyspark_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.runtime.java import Java
    from millstream.runtime.settings import Setting

# What Spark 4.2's own launcher gives (a test compares), but for jdk.incubator.vector: it serves only
# linear algebra, warns on the terminal at every start, and the wheel's Java lacks it.
OPENED = (
    "java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util",
    "java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs",
    "sun.security.action", "sun.util.calendar",
)  # fmt: skip
OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED),
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Dderby.connection.requireAuthentication=false",
)

# Modules that load classes or keys from a place the connection's own settings name.
LOGIN_MODULES = "com.sun.security.auth.module.JndiLoginModule,com.sun.security.auth.module.LdapLoginModule"

LOGGING = Path(__file__).with_name("log4j2.properties")

# A cold JVM on a loaded machine was seen to need 20 s until its gateway answers.
PATIENCE = 120.0


@dataclass(frozen=True)
class Launch:
    """Everything a JVM of Spark is started with."""

    java: Java
    class_path: Sequence[Path]
    settings: Sequence[Setting]
    private: Path
    log: Path
    local: bool


@dataclass(frozen=True)
class Gateway:
    """A JVM that is starting: where it will write how to reach it."""

    process: subprocess.Popen[bytes]
    info: Path
    log: Path

    def wait(self) -> tuple[int, str]:
        """Port and secret of the gateway; NotReady with the log's last line when the JVM gives up."""
        until = time.monotonic() + PATIENCE
        while not self.info.is_file():
            if self.process.poll() is not None or time.monotonic() > until:
                self.process.kill()
                raise NotReady(
                    f"Spark's JVM did not start: {_last_line(self.log)}",
                    f"the whole account is in {self.log}",
                )
            time.sleep(0.01)
        said = self.info.read_bytes()
        for read in ("gateway", "spark.properties"):  # secrets stand in both
            (self.info.parent / read).unlink()
        # An int of four bytes, then a string after its length in four bytes; written whole, then renamed.
        return int.from_bytes(said[:4]), said[8:].decode()


def start(launch: Launch, flags: Sequence[str] = ()) -> Gateway:
    """Start the JVM, with these options of its own, and return at once: Python can import while it boots."""
    info = launch.private / "gateway"
    command = [
        str(launch.java.binary),
        f"@{_argument_file(launch, flags)}",
        "org.apache.spark.deploy.SparkSubmit",
        "--properties-file",
        str(_properties_file(launch)),
        "--load-spark-defaults",
        "pyspark-shell",
    ]
    with launch.log.open("ab") as log:
        process = subprocess.Popen(
            command,
            # Spark's gateway ends when this pipe closes, that is when this process ends in any way.
            stdin=subprocess.PIPE,
            # Standard output belongs to the command's own data; what the JVM prints is log.
            stdout=log,
            stderr=log,
            env=_environment(launch, info),
            preexec_fn=_deaf,
        )
    return Gateway(process, info, launch.log)


@contextlib.contextmanager
def reachable(port: int, secret: str) -> Iterator[None]:
    """The variables by which PySpark finds a JVM that already runs, for as long as it looks."""
    os.environ["PYSPARK_GATEWAY_PORT"] = str(port)
    os.environ["PYSPARK_GATEWAY_SECRET"] = secret
    try:
        yield
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]


def _deaf() -> None:
    # Ctrl-C and a service manager's SIGTERM reach the whole process group. Python decides what they
    # mean; a JVM that stopped at once would fail the batch that a graceful stop lets finish.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _environment(launch: Launch, info: Path) -> dict[str, str]:
    ours = {
        "JAVA_HOME": str(launch.java.home),
        "SPARK_HOME": str(pyspark_folder()),
        "SPARK_CONNECT_MODE": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(info),
        # Python workers of one job must agree on the hash of a string.
        "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0"),
    }
    if launch.local:
        # Every listener of this JVM, RPC and block transfer included, binds to loopback by this.
        ours["SPARK_LOCAL_IP"] = "127.0.0.1"
    return {**os.environ, **ours}


def _argument_file(launch: Launch, flags: Sequence[str]) -> Path:
    """A java argument file: hundreds of jars would make `ps` unreadable."""
    path = launch.private / "java.args"
    memory = next(s.value for s in launch.settings if s.key == "spark.driver.memory")
    options = [
        *OPTIONS,
        f"-Xmx{memory}",
        # What the JVM itself has to say goes where Spark's log goes; stdout is the pipeline's.
        "-XX:+DisplayVMOutputToStderr",
        f"-XX:ErrorFile={launch.log}.crash",
        "-Xlog:disable",
        "-Xlog:all=warning:stderr",
        f"-Dlog4j2.configurationFile={LOGGING.as_uri()}",
        f"-Dmillstream.log={launch.log}",
        # In another zone Delta rebuilds a table's state after each commit, to see that it was kept right.
        "-Duser.timezone=UTC",
        f"-Djava.io.tmpdir={launch.private / 'local'}",
        f"-Dderby.system.home={launch.private}",
        f"-Dorg.apache.kafka.disallowed.login.modules={LOGIN_MODULES}",
        *flags,
        *_own_options(launch.settings),
        "-cp",
        os.pathsep.join(map(str, launch.class_path)),
    ]
    path.write_text("".join(f"{_quoted(option)}\n" for option in options))
    return path


def _own_options(settings: Sequence[Setting]) -> list[str]:
    keys = ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions")
    return [word for setting in settings if setting.key in keys for word in shlex.split(setting.value)]


def _properties_file(launch: Launch) -> Path:
    """Spark's settings in a file that only this user reads, where arguments would stand in `ps`."""
    path = launch.private / "spark.properties"
    path.write_text("".join(f"{_escaped(s.key)}={_escaped(s.value)}\n" for s in launch.settings), "ascii")
    path.chmod(0o600)
    return path


def _quoted(option: str) -> str:
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _escaped(text: str) -> str:
    """As java.util.Properties reads it."""
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    for sign in " =:#!":
        escaped = escaped.replace(sign, f"\\{sign}")
    # UTF-16 units, as Java counts characters.
    units = escaped.encode("utf-16-be")
    codes = [int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2)]
    return "".join(chr(code) if code < 128 else f"\\u{code:04x}" for code in codes)


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(("Error", "Exception", "Caused by", "Unrecognized"))]
    return (telling or lines or ["it said nothing"])[-1].strip()
