"""Open the one Spark session of this process: Java, jars, settings and log in one call."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.checkpoint.private_folder import is_private, make_private
from millstream.checkpoint.remote.file_system import set_file_system
from millstream.diagnostics.failure import MillstreamError, NotReady
from millstream.spark import cache_folder, cds_archive, internals, jvm_launch, settings
from millstream.spark.cluster import code_archive
from millstream.spark.cluster.hadoop_file_system import HadoopFileSystem
from millstream.spark.cluster.standalone_master import explain_refusal, require_master
from millstream.spark.conditional_writes.compiled_jar import ensure_s3_jars
from millstream.spark.jars import jar_cache
from millstream.spark.jars.ivy_download import pyspark_folder
from millstream.spark.java_discovery import find_java
from millstream.spark.private_folder import create_private_folder
from millstream.spark.settings import Setting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from millstream.spark.java_discovery import Java


NOTHING: Mapping[str, object] = MappingProxyType({})

_SHARED_ARCHIVE = (
    "executors on this machine map the driver's class-data archive: each takes seconds of CPU less"
)

# How long Python waits at its end for the JVM to close its files, in seconds.
FAREWELL = 10.0
# A JVM that is killed closes its connections some time before it has ended, in seconds.
_DEATH = 5.0

_PYTHON = "spark.pyspark.python"


class _Jvm(NamedTuple):
    process: subprocess.Popen[bytes]
    private: Path
    log: Path


_applied: list[Setting] = []
_running: list[_Jvm] = []


def open_session(name: str, conf: Mapping[str, object] = NOTHING, log: Path | None = None) -> SparkSession:
    """Return the Spark session of this process, started if there is none.

    `conf` takes precedence over our settings. If a session runs already, only settings that Spark can change at run
    time have an effect. Spark and the JVM log to `log` (default: a file in the user's cache), never to the terminal.
    In a process that spark-submit has started, its JVM, log and settings are used. Raises NotReady if Java or a jar
    is missing, the cluster's master does not answer or the JVM does not start, and InvalidInput for a setting that
    may not be set.
    """
    conf = settings.with_lasting_metastore(conf)
    master, is_new = str(conf.get("spark.master", "local")), internals.active_context() is None
    if is_new and internals.is_submitted():
        conf = _submitted_settings(name, settings.read_secret(conf))
    elif is_new:
        require_master(master)
        with explain_refusal(master):
            _boot_jvm(name, settings.read_secret(conf), log)
        conf = {"spark.app.name": name, **settings.without_secret(conf)}
    else:
        conf = settings.without_secret(conf)
    with explain_refusal(master):
        spark = _create_session(conf)
        if is_new:
            code_archive.ship_package(spark.sparkContext)
    set_file_system(HadoopFileSystem(spark.sparkContext))
    return spark


def applied_settings() -> list[Setting]:
    """Return the settings with which the session of this process was started, each with its reason."""
    return list(_applied)


def shut_down_jvm(patience: float = FAREWELL) -> bool:
    """Wait for the JVM of this process to end, at most `patience` seconds, and remove its files from disk.

    Returns False if it had to be killed or failed. A second call does nothing.
    """
    return all(_end_jvm(_running.pop(), patience) for _ in tuple(_running))


def kill_jvm() -> None:
    """End the JVM of this process at once."""
    for jvm in tuple(_running):
        jvm.process.kill()


def explain_lost_jvm(error: BaseException) -> MillstreamError | None:
    """Return what to report instead of `error` if this process's JVM has ended by itself, or None if it has not."""
    for jvm in _running:
        try:
            code = jvm.process.wait(_DEATH) if _is_of_gateway(error) else jvm.process.poll()
        except subprocess.TimeoutExpired:
            continue
        if code is not None:
            how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
            return MillstreamError(
                f"Spark's JVM {how}",
                f"see the end of {jvm.log} for the cause; if it names none, the system may have been short of memory",
            )
    return None


def _is_of_gateway(error: BaseException | None) -> bool:
    """Return whether Py4J's connection to the JVM has failed, and not one to a server."""
    while error is not None:
        # Reading from a socket has frames of Python's own modules below those of Py4J.
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)][-3:]
        is_of_py4j = any(str(frame.f_globals.get("__name__")).startswith("py4j.") for frame in frames)
        if type(error).__name__ == "Py4JNetworkError" or (isinstance(error, ConnectionError) and is_of_py4j):
            return True
        error = error.__cause__ or error.__context__
    return False


def stop_session(spark: SparkSession) -> None:
    """Stop a session. Does nothing if its JVM has died."""
    from py4j.protocol import Py4JNetworkError  # noqa: PLC0415 - importing this module must stay cheap

    if not _running or any(jvm.process.poll() is None for jvm in _running):
        # A JVM that was just killed does not respond, although the system may still report it alive.
        with contextlib.suppress(ConnectionError, Py4JNetworkError):
            spark.stop()


def archive_path() -> Path | None:
    """Return the path of the class-data archive for this machine's Java, or None if there can be none."""
    planned = _plan_launch("millstream-training", NOTHING, None)
    return cds_archive.archive_file(planned.java, planned.class_path)


def boot_training(flags: Sequence[str], log: Path) -> SparkSession:
    """Return a session whose JVM runs with `flags` in place of an archive. Only `train` uses it."""
    _launch(_plan_launch("millstream-training", NOTHING, log), flags)
    return _create_session(NOTHING)


def assemble_archive(flags: Sequence[str], log: Path, patience: float) -> bool:
    """Let a JVM with `flags` write an AOT cache, for at most `patience` seconds. False if it failed."""
    planned = _plan_launch("millstream-training", NOTHING, log)
    _running.append(_Jvm(jvm_launch.start_jvm(planned, flags).process, planned.private, planned.log))
    return shut_down_jvm(patience)


def _boot_jvm(name: str, conf: Mapping[str, object], log: Path | None) -> None:
    """Start the JVM with the class-data archive if there is one, else create one in the background."""
    planned = _plan_launch(name, conf, log)
    # The JVM accepts an archive if its class path is the beginning of its own.
    archive = cds_archive.archive_file(planned.java, _class_path(jar_cache.jar_paths("spark")))
    flags = cds_archive.jvm_flags(archive)
    if archive is not None and not flags:
        cds_archive.announce_start()
    try:
        _launch(planned, flags)
    except NotReady:
        if not (archive and flags):
            raise
        # The JVM itself recognises an archive of another class path, but may crash on a damaged one.
        cds_archive.discard_archive(archive)
        _launch(planned, ())
    cds_archive.train_later(archive)


def _submitted_settings(name: str, conf: Mapping[str, object]) -> dict[str, object]:
    """Return all settings for the JVM that spark-submit started: ours, then its own, then `conf`.

    Raises NotReady if spark-submit was started without the locked jars, which a running JVM cannot add to itself.
    """
    submitted = {
        key: value for key, value in internals.submitted_conf().items() if key not in settings.REFUSED
    }
    _choose_python({**submitted, **conf}.get(_PYTHON))
    is_with_s3 = settings.uses_s3(conf)
    jars = [*jar_cache.ensure_jars("spark"), *(ensure_s3_jars() if is_with_s3 else ())]
    missing = [jar.name for jar in jars if jar.name not in submitted.get("spark.jars", "")]
    if missing:
        raise NotReady(
            f"spark-submit was started without {missing[0]}"
            + (f" and {len(missing) - 1} more jars" if missing[1:] else ""),
            f'add --jars "$(millstream jars paths{" s3" if is_with_s3 else ""})" to the command',
        )
    planned = settings.start_settings(name, {**submitted, **conf}, (), create_private_folder())
    _applied[:] = [setting for setting in planned if setting.key != "spark.driver.memory"]
    return {setting.key: setting.value for setting in _applied}


def _plan_launch(name: str, conf: Mapping[str, object], log: Path | None) -> jvm_launch.Launch:
    java = find_java()
    jars = jar_cache.ensure_jars("spark")
    s3_jars = ensure_s3_jars() if settings.uses_s3(conf) else []
    private, class_path = create_private_folder(), _class_path(jars)
    master = str(conf.get("spark.master", "local"))
    executors = _executor_settings(master, java, class_path)
    return jvm_launch.Launch(
        java=java,
        class_path=[*class_path, *s3_jars],
        settings=settings.start_settings(name, conf, [*jars, *s3_jars], private, executors),
        private=private,
        log=_log_file(log),
        is_on_loopback=settings.is_on_loopback(master),
    )


def _executor_settings(master: str, java: Java, class_path: Sequence[Path]) -> list[Setting]:
    """Return the settings with which executors on this machine use the driver's archive; none without one."""
    if settings.is_local(master) or not settings.is_on_loopback(master):
        return []
    flags = cds_archive.executor_flags(cds_archive.archive_file(java, class_path))
    if not flags:
        return []
    return [
        # The class path of an archive must be the beginning of the executor's.
        Setting("spark.executor.extraClassPath", os.pathsep.join(map(str, class_path)), _SHARED_ARCHIVE),
        Setting("spark.executor.defaultJavaOptions", shlex.join(flags), _SHARED_ARCHIVE),
    ]


def _launch(planned: jvm_launch.Launch, flags: Sequence[str]) -> None:
    """Start the JVM, import PySpark while it boots, and connect the two."""
    _choose_python(next((setting.value for setting in planned.settings if setting.key == _PYTHON), None))
    gateway = jvm_launch.start_jvm(planned, flags)
    if not _running:
        atexit.register(shut_down_jvm)
    _running.append(_Jvm(gateway.process, planned.private, planned.log))
    import pyspark.sql  # noqa: PLC0415 - imported while the JVM boots
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415 - as above

    internals.recognise_numpy_without_loading_it()
    with jvm_launch.gateway_environment(*gateway.wait()):
        java_gateway = launch_gateway()  # type: ignore[no-untyped-call]
    with _keep_interrupt_handler():
        pyspark.SparkContext(gateway=java_gateway)
    _applied[:] = [*planned.settings, *_start_up_measures(flags)]


def _choose_python(setting: object) -> None:
    """Choose the Python that runs functions: that of the setting, of the environment, or the one of this process.

    Both PySpark and the JVM's environment read the variable, so that functions run on the interpreter that pickled
    them. A cluster's workers may have theirs elsewhere, which Spark's own setting says to spark-submit alone.
    """
    if setting:
        os.environ["PYSPARK_PYTHON"] = str(setting)
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def _start_up_measures(flags: Sequence[str]) -> list[Setting]:
    """Return the measures for a quick start, in the format of settings."""
    locked = len(jar_cache.jar_paths("spark"))
    options = ("-XX:SharedArchiveFile=", "-XX:AOTCache=")
    archive = next((flag.partition("=")[2] for flag in flags if flag.startswith(options)), "none yet")
    return [
        Setting("(class path)", f"{locked} locked jars", "Spark need not copy and open them one by one"),
        Setting(
            "(class-data archive)", archive, "classes are mapped from one file instead of read and checked"
        ),
    ]


@contextlib.contextmanager
def _keep_interrupt_handler() -> Iterator[None]:
    """Keep this process's handler for Ctrl-C. Spark's would cancel all jobs, while a run finishes its batches."""
    former = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, former)


def _create_session(conf: Mapping[str, object]) -> SparkSession:
    from pyspark.logger import PySparkLogger  # noqa: PLC0415 - importing this module must stay cheap
    from pyspark.sql import SparkSession  # noqa: PLC0415 - as above

    remember_java_names()
    # This logger prints a stack trace as JSON for every analysis error, which we report as a finding.
    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_is_not_py4j)
    # Py4J's loggers report a failed batch with a traceback, which Spark reports as well.
    logging.getLogger("py4j").propagate = False
    builder = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def remember_java_names() -> None:
    """Let Py4J's views and packages keep the classes and packages that they have found. Can be called again.

    By itself Py4J asks for each part of a name each time it is used: `_jvm.org.apache.spark.sql.functions` is six
    questions. For five of them the JVM searches every jar on its class path before it answers that there is no class
    of that name. PySpark uses such names for each column that it makes, and for each report of a query.
    """
    from py4j.java_gateway import JavaPackage, JVMView  # noqa: PLC0415 - importing this module must stay cheap

    for parent in (JVMView, JavaPackage):
        if not getattr(parent.__getattr__, "remembers", False):
            parent.__getattr__ = _remembering(parent.__getattr__)


def _remembering(look_up: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    from py4j.java_gateway import JavaClass, JavaPackage  # noqa: PLC0415 - as above

    def look_up_once(parent: Any, name: str) -> Any:
        java_name = look_up(parent, name)
        # What Py4J does not find is a package to it, which an import or a jar can turn into a class. Java's packages
        # have lower-case names.
        if isinstance(java_name, JavaClass) or (isinstance(java_name, JavaPackage) and name.islower()):
            # Python looks in `__dict__` before it calls `__getattr__`.
            vars(parent)[name] = java_name
        return java_name

    look_up_once.remembers = True  # type: ignore[attr-defined]
    return look_up_once


def _class_path(extra: list[Path]) -> list[Path]:
    """Return our jars, the user's configuration folders if there are any, then Spark's own jars, sorted.

    The order is the same at each start, because a class-data archive fits one class path only.
    """
    folders = [Path(os.environ[key]) for key in ("SPARK_CONF_DIR", "HADOOP_CONF_DIR") if os.environ.get(key)]
    return [*extra, *folders, *sorted((pyspark_folder() / "jars").glob("*.jar"))]


def _log_file(requested: Path | None) -> Path:
    path = (requested or cache_folder.create_folder("logs") / "spark.log").absolute()
    make_private(path.parent) if is_private(path) else path.parent.mkdir(parents=True, exist_ok=True)
    # The log may contain plans and rows.
    os.close(os.open(path, os.O_CREAT | os.O_APPEND, 0o600))
    return path


def _end_jvm(jvm: _Jvm, patience: float) -> bool:
    """Let the JVM end by closing its pipe, then remove its files from disk."""
    internals.disconnect_gateway()
    if jvm.process.stdin:
        with contextlib.suppress(BrokenPipeError):
            jvm.process.stdin.close()
    try:
        jvm.process.wait(patience)
    except subprocess.TimeoutExpired:
        jvm.process.kill()
        jvm.process.wait()
    shutil.rmtree(jvm.private, ignore_errors=True)
    return jvm.process.returncode == 0


def _is_not_py4j(record: logging.LogRecord) -> bool:
    """Filter out Py4J's traceback of a lost JVM in the root logger, because the caller reports the error itself."""
    return record.module not in ("java_gateway", "clientserver")
