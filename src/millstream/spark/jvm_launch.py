"""Start the JVM of Spark's driver without terminal output, and end it with this process."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import NotReady
from millstream.process.parent_death import make_parent_death_hook
from millstream.spark.jars.ivy_download import pyspark_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from millstream.spark.java_discovery import Java
    from millstream.spark.settings import Setting

# The options of Spark 4.2's own launcher (a test compares), except jdk.incubator.vector: that serves only linear
# algebra, warns on the terminal at every start, and is missing in the wheel's Java.
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

# Login modules that load classes or keys from a place named in a connection's settings.
LOGIN_MODULES = "com.sun.security.auth.module.JndiLoginModule,com.sun.security.auth.module.LdapLoginModule"

LOGGING = Path(__file__).with_name("log4j2.properties")

# A cold JVM on a loaded machine was seen to need 20 s until its gateway responds.
PATIENCE = 120.0


@dataclass(frozen=True)
class Launch:
    """Everything with which a JVM of Spark is started."""

    java: Java
    class_path: Sequence[Path]
    settings: Sequence[Setting]
    private: Path
    log: Path
    is_on_loopback: bool


@dataclass(frozen=True)
class Gateway:
    """A JVM that is starting, and the file to which it will write how to reach it."""

    process: subprocess.Popen[bytes]
    info: Path
    log: Path

    def wait(self) -> tuple[int, str]:
        """Return port and secret of the gateway. Raises NotReady with the log's last line if the JVM fails."""
        deadline = time.monotonic() + PATIENCE
        while not self.info.is_file():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                raise NotReady(
                    f"Spark's JVM did not start: {_last_line(self.log)}",
                    f"see the whole log in {self.log}",
                )
            time.sleep(0.01)
        content = self.info.read_bytes()
        for name in ("gateway", "spark.properties"):  # both files contain secrets
            (self.info.parent / name).unlink()
        # The file has an int of four bytes, then a string after its four-byte length. It is renamed when complete.
        return int.from_bytes(content[:4]), content[8:].decode()


def start_jvm(launch: Launch, flags: Sequence[str] = ()) -> Gateway:
    """Start the JVM with these additional options and return at once, so that Python can import while it boots."""
    info = launch.private / "gateway"
    command = [
        str(launch.java.binary),
        f"@{_write_argument_file(launch, flags)}",
        "org.apache.spark.deploy.SparkSubmit",
        "--properties-file",
        str(_write_properties(launch)),
        "--load-spark-defaults",
        "pyspark-shell",
    ]
    with launch.log.open("ab") as log:
        process = subprocess.Popen(
            command,
            # Spark's gateway ends when this pipe closes, that is when this process ends in whatever way.
            stdin=subprocess.PIPE,
            # Standard output is for the command's own data, so the JVM's output goes to the log.
            stdout=log,
            stderr=log,
            env=_build_environment(launch, info),
            preexec_fn=_make_preparation(),
        )
    return Gateway(process, info, launch.log)


@contextlib.contextmanager
def gateway_environment(port: int, secret: str) -> Iterator[None]:
    """Set the variables by which PySpark finds a running JVM, within this context."""
    os.environ["PYSPARK_GATEWAY_PORT"] = str(port)
    os.environ["PYSPARK_GATEWAY_SECRET"] = secret
    try:
        yield
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]


def _make_preparation() -> Callable[[], None]:
    """Return the function that the JVM's process runs before it becomes the JVM."""
    # Spark's own shutdown takes seconds, in which a JVM without its Python would still lock the sinks. The kernel
    # watches the thread that starts the JVM, and only the main thread lives as long as the process.
    is_main = threading.current_thread() is threading.main_thread()
    set_death_signal = make_parent_death_hook(signal.SIGKILL) if is_main else None

    def prepare() -> None:
        _ignore_signals()
        if set_death_signal is not None:
            set_death_signal()

    return prepare


def _ignore_signals() -> None:
    # Ctrl-C, a service manager's SIGTERM and the SIGHUP of a closed terminal reach the whole process group. Python
    # decides how to react. A JVM that stopped at once would fail the batch that a graceful stop lets finish.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def _build_environment(launch: Launch, info: Path) -> dict[str, str]:
    variables = {
        "JAVA_HOME": str(launch.java.home),
        "SPARK_HOME": str(pyspark_folder()),
        "SPARK_CONNECT_MODE": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(info),
        # Python workers of one job must agree on the hash of a string.
        "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0"),
    }
    if launch.is_on_loopback:
        # With this, every listener of the JVM, including RPC and block transfer, binds to loopback.
        variables["SPARK_LOCAL_IP"] = "127.0.0.1"
    return {**os.environ, **variables}


def _write_argument_file(launch: Launch, flags: Sequence[str]) -> Path:
    """Write a java argument file, because hundreds of jars would make `ps` unreadable."""
    path = launch.private / "java.args"
    memory = next(s.value for s in launch.settings if s.key == "spark.driver.memory")
    options = [
        *OPTIONS,
        f"-Xmx{memory}",
        # Messages of the JVM itself go to Spark's log, because stdout is the pipeline's.
        "-XX:+DisplayVMOutputToStderr",
        f"-XX:ErrorFile={launch.log}.crash",
        "-Xlog:disable",
        "-Xlog:all=warning:stderr",
        f"-Dlog4j2.configurationFile={LOGGING.as_uri()}",
        f"-Dmillstream.log={launch.log}",
        # In another time zone Delta rebuilds a table's state after each commit to verify it.
        "-Duser.timezone=UTC",
        f"-Djava.io.tmpdir={launch.private / 'local'}",
        f"-Dderby.system.home={launch.private}",
        f"-Dorg.apache.kafka.disallowed.login.modules={LOGIN_MODULES}",
        *flags,
        *_user_options(launch.settings),
        "-cp",
        os.pathsep.join(map(str, launch.class_path)),
    ]
    path.write_text("".join(f"{_quote(option)}\n" for option in options))
    return path


def _user_options(settings: Sequence[Setting]) -> list[str]:
    keys = ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions")
    return [word for setting in settings if setting.key in keys for word in shlex.split(setting.value)]


def _write_properties(launch: Launch) -> Path:
    """Write Spark's settings to a file that only this user can read, because `ps` would show arguments."""
    path = launch.private / "spark.properties"
    path.write_text("".join(f"{_escape(s.key)}={_escape(s.value)}\n" for s in launch.settings), "ascii")
    path.chmod(0o600)
    return path


def _quote(option: str) -> str:
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _escape(text: str) -> str:
    """Escape a text for java.util.Properties."""
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    for character in " =:#!":
        escaped = escaped.replace(character, f"\\{character}")
    # UTF-16 units, as Java counts characters.
    units = escaped.encode("utf-16-be")
    codes = [int.from_bytes(units[index : index + 2]) for index in range(0, len(units), 2)]
    return "".join(chr(code) if code < 128 else f"\\u{code:04x}" for code in codes)


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    error_lines = [
        line for line in lines if line.startswith(("Error", "Exception", "Caused by", "Unrecognized"))
    ]
    return (error_lines or lines or ["it said nothing"])[-1].strip()
