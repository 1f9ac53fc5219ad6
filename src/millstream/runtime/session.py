"""Open the one Spark session of this process: Java, jars, settings and log in one call."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import NotReady
from millstream.runtime import archive, home, jars, launch, settings
from millstream.runtime.ivy import pyspark_folder
from millstream.runtime.java import find_java
from millstream.runtime.private import private_folder
from millstream.runtime.settings import Setting

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession


NOTHING: Mapping[str, object] = MappingProxyType({})

# How long Python waits, at its end, for the JVM to close its files.
FAREWELL = 10.0

_applied: list[Setting] = []
_running: list[tuple[subprocess.Popen[bytes], Path]] = []


def open_session(name: str, conf: Mapping[str, object] = NOTHING, log: Path | None = None) -> SparkSession:
    """The Spark session of this process, started if there is none.

    `conf` wins over our settings; in a process whose session runs already, only settings that Spark
    can change at run time have an effect. What Spark and the JVM log goes to `log` (a file in the
    user's cache unless given), nothing of it to the terminal. Raises NotReady when Java or a jar is
    missing or the JVM does not start, WrongUse for a setting that may not be set.
    """
    from pyspark import SparkContext  # noqa: PLC0415 - importing this module must stay cheap

    conf = settings.with_lasting_metastore(conf)
    active = SparkContext._active_spark_context
    if active is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
        _boot(name, conf, log)
    return _session(conf if active else {"spark.app.name": name, **conf})


def applied() -> list[Setting]:
    """What the session of this process was started with, each setting with its reason."""
    return list(_applied)


def end(patience: float = FAREWELL) -> bool:
    """Wait for the JVM of this process to end, at most `patience` seconds, and remove what it kept on disk.

    False when it had to be killed or failed; does nothing the second time.
    """
    return all(_farewell(*_running.pop(), patience) for _ in tuple(_running))


def stop(spark: SparkSession) -> None:
    """Stop a session; nothing when its JVM has died: nobody is left to be told."""
    from py4j.protocol import Py4JNetworkError  # noqa: PLC0415 - importing this module must stay cheap

    if not _running or any(process.poll() is None for process, _ in _running):
        # One that was killed a moment ago answers nobody, and the system still calls it alive.
        with contextlib.suppress(ConnectionError, Py4JNetworkError):
            spark.stop()


def archive_place() -> Path | None:
    """Where the class-data archive of this machine's Java stands, or would; None when there can be none."""
    planned = _plan("millstream-training", NOTHING, None)
    return archive.archive_file(planned.java, planned.class_path)


def boot_training(flags: Sequence[str], log: Path) -> SparkSession:
    """A session whose JVM runs with `flags` in place of an archive; only `train` has a use for it."""
    _launch(_plan("millstream-training", NOTHING, log), flags)
    return _session(NOTHING)


def _boot(name: str, conf: Mapping[str, object], log: Path | None) -> None:
    """Start the JVM with the class-data archive where there is one, and make one where there is none."""
    planned = _plan(name, conf, log)
    kept = archive.archive_file(planned.java, planned.class_path)
    flags = archive.flags(kept)
    try:
        _launch(planned, flags)
    except NotReady:
        if not (kept and flags):
            raise
        # The JVM tells by itself an archive of another class path, but may die of a damaged one.
        archive.discard(kept)
        _launch(planned, ())
    archive.train_later(kept)


def _plan(name: str, conf: Mapping[str, object], log: Path | None) -> launch.Launch:
    java = find_java()
    found = jars.ensure("spark")
    private = private_folder()
    chosen = settings.start_settings(name, conf, found, private)
    local = settings.local(next(s.value for s in chosen if s.key == "spark.master"))
    return launch.Launch(
        java=java,
        class_path=_class_path(found if local else []),
        settings=chosen,
        private=private,
        log=_log_file(log),
        local=local,
    )


def _launch(planned: launch.Launch, flags: Sequence[str]) -> None:
    """Start the JVM, import PySpark while it boots, and connect the two."""
    # PySpark reads it here, and the JVM in its own environment: functions run on the interpreter that pickled them.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    gateway = launch.start(planned, flags)
    if not _running:
        atexit.register(end)
    _running.append((gateway.process, planned.private))
    import pyspark.sql  # noqa: PLC0415 - imported while the JVM boots
    import pyspark.testing.utils  # noqa: PLC0415 - as above: the first call to the JVM imports it, and pandas with it
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415 - as above

    with launch.reachable(*gateway.wait()):
        connected = launch_gateway()  # type: ignore[no-untyped-call]
    with _own_interrupt():
        pyspark.SparkContext(gateway=connected)
    _applied[:] = [*planned.settings, *_start_up(planned, flags)]


def _start_up(planned: launch.Launch, flags: Sequence[str]) -> list[Setting]:
    """What was done to start quickly, told like the settings."""
    locked = len(jars.paths("spark")) if planned.local else 0
    archived = next((flag.partition("=")[2] for flag in flags if "SharedArchiveFile" in flag), "none yet")
    return [
        Setting("(class path)", f"{locked} locked jars", "Spark need not copy and open them one by one"),
        Setting(
            "(class-data archive)", archived, "classes are mapped from one file instead of read and checked"
        ),
    ]


@contextlib.contextmanager
def _own_interrupt() -> Iterator[None]:
    """Keep this process's answer to Ctrl-C: a context would cancel all jobs, where a run finishes its batches."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _session(conf: Mapping[str, object]) -> SparkSession:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - importing this module must stay cheap

    # It prints a stack trace as JSON for every analysis error, which becomes a finding of ours.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_not_of_py4j)
    # Its loggers tell a batch that fails with a traceback; Spark reports it as well.
    logging.getLogger("py4j").propagate = False
    builder = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _class_path(extra: list[Path]) -> list[Path]:
    """Our jars, the user's configuration folders where there are any, then Spark's own jars, sorted.

    The order is the same at each start: a class-data archive fits one class path only.
    """
    folders = [Path(os.environ[key]) for key in ("SPARK_CONF_DIR", "HADOOP_CONF_DIR") if os.environ.get(key)]
    return [*extra, *folders, *sorted((pyspark_folder() / "jars").glob("*.jar"))]


def _log_file(given: Path | None) -> Path:
    path = (given or home.folder("logs") / "spark.log").absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    # Plans and rows may stand in it.
    os.close(os.open(path, os.O_CREAT | os.O_APPEND, 0o600))
    return path


def _farewell(process: subprocess.Popen[bytes], private: Path, patience: float) -> bool:
    """Let the JVM end by closing its pipe, then remove what it kept on disk."""
    _hang_up()
    if process.stdin:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    shutil.rmtree(private, ignore_errors=True)
    return process.returncode == 0


def _hang_up() -> None:
    """Tell Py4J that nobody answers any more: objects collected after this would be reported to a closed socket."""
    from pyspark import SparkContext  # noqa: PLC0415 - importing this module must stay cheap

    if SparkContext._gateway is not None:
        SparkContext._gateway._gateway_client.is_connected = False


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """Py4J logs a lost JVM to the root logger, with a traceback; the caller gets the error as well and tells it."""
    return record.module not in ("java_gateway", "clientserver")
