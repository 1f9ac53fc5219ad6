"""The settings with which a session starts, each with its reason."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from millstream.diagnostics.failure import InvalidInput, NotReady
from millstream.spark import resources
from millstream.spec.location import S3_SCHEME, S3_SETTINGS
from millstream.spec.secrets.redaction import SECRET_NAME
from millstream.spec.secrets.secret import protect_settings
from millstream.spec.secrets.written_secret import NOT_SECRET_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# A quarter of the memory, within these bounds, in MiB. RocksDB's state, Python workers and the page cache need the
# rest, and a heap above 8 GiB mostly makes a garbage collection longer.
LEAST_HEAP, MOST_HEAP = 1024, 8192

# Each of these settings names code that the JVM would fetch and run without a checksum to verify it.
UNLOCKED = "jars are locked by sha256; put the file on this machine and name it in spark.jars"
REFUSED = {"spark.jars.packages": UNLOCKED, "spark.jars.repositories": UNLOCKED}

# Values that are appended to ours instead of replacing them.
ADDED = ("spark.sql.extensions",)

# Spark's default runs a shell command for each file that it renames. This one requires that no other process writes
# to the folder, which the checkpoint's lock guarantees. A crash leaves a whole file or none, as with the default.
FILE_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"

# A former driver that was suspended may still write one batch to a remote checkpoint. Spark's default renames onto a
# new name, or replaces, in one operation of the file system.
_FILE_MANAGER_SETTING = "spark.sql.streaming.checkpointFileManagerClass"
REMOTE_CHECKPOINTS = {
    _FILE_MANAGER_SETTING: (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
    )
}

# With any other class, a suspended driver could replace the offsets that its successor has written.
S3_CHECKPOINTS = {_FILE_MANAGER_SETTING: "millstream.ConditionalCheckpointFileManager"}

# Settings of the client of S3 in which we differ from Hadoop. A spec's own take precedence.
S3_CLIENT = {
    # Delta's own class looks for a commit and then writes it, which excludes writers of the same process alone.
    "spark.delta.logStore.s3a.impl": "millstream.ConditionalLogStore",
    # The default of Hadoop 3.5 reads ahead for analytic engines; this is the client's own, long used stream.
    f"{S3_SETTINGS}input.stream.type": "classic",
    # An outage reaches the run within seconds, which reports it and tries again. By default the client alone tries
    # for minutes, and the query looks alive.
    f"{S3_SETTINGS}attempts.maximum": "3",
    f"{S3_SETTINGS}retry.limit": "4",
}

# A file on HDFS is complete once a data node has reported its last block, some milliseconds after it was written.
# Hadoop's client asks at once, and if that is too early waits for 400 ms, doubled with each question; a batch writes
# three or more files one after the other. These delays begin with 5 ms, and give up later than Hadoop's in total.
_COMPLETION = "spark.hadoop.dfs.client.block.write.locateFollowingBlock."
HDFS_CLIENT = {f"{_COMPLETION}initial.delay.ms": "5", f"{_COMPLETION}retries": "12"}

# Hadoop's local file system runs `readlink` and `chmod`, because PySpark has no native library of Hadoop. This one
# asks the JVM instead.
LOCAL_FILES = "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"

# From so many times the JVM's usual number of calls on, a method is compiled anew by the optimising compiler. In its
# first minutes a run of small batches would spend a third of its CPU there. Rows by the million pass these limits
# within seconds.
OPTIMISED_LATER = 50
OPTIMISING_COMPILER = " ".join(
    f"-XX:Tier4{name}={default * OPTIMISED_LATER}"
    for name, default in (
        ("InvocationThreshold", 5_000),
        ("MinInvocationThreshold", 600),
        ("CompileThreshold", 15_000),
        ("BackEdgeThreshold", 40_000),
    )
)

ROCKSDB_CHANGES = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"

_SECRET_NAMES = f"(?i){SECRET_NAME.pattern}"
# The password in a URL inside any text.
_URL_USER_INFO = "(?<=://)[^/?#\\s:@\"']*:[^/?#\\s\"']*(?=@)"


# Their code is above this package, so it is not imported: what a session needs of them is data.
CONNECTORS = Path(__file__).parents[1] / "connectors"


# Of a value, for a person, in characters.
_LONGEST = 200


class Setting(NamedTuple):
    """One Spark setting and why it has that value."""

    key: str
    value: str
    reason: str

    def __str__(self) -> str:
        """Return one line; of a long list of jars, its beginning."""
        value = self.value if len(self.value) <= _LONGEST else f"{self.value[:_LONGEST]}…"
        return f"{self.key} = {value}  ({self.reason})"


SECRET = "spark.authenticate.secret"  # noqa: S105 - the name of the setting
_SECRET_FILE = f"{SECRET}.file"
_LOOPBACK = re.compile(r"spark://(?:127\.[\d.]+|localhost)(?::\d+)?$")

# A size as Spark's settings of memory have it, and the MiB of a unit; without one, it is in MiB.
_SIZE = re.compile(r"(?P<number>\d+)(?P<unit>[kmgt]?)b?$")
_MIB = {"k": 1 / 1024, "m": 1, "g": 1024, "t": 1024 * 1024}
# Spark's default, in MiB.
_MOST_RESULTS = 1024

# The folder of a Hive metastore stored by Derby, if it is relative.
_METASTORE = "spark.hadoop.javax.jdo.option.ConnectionURL"
_RELATIVE = re.compile(r"(?<=^jdbc:derby:;databaseName=)(?!/)[^;]+")


def with_lasting_metastore(conf: Mapping[str, object]) -> Mapping[str, object]:
    """Return the settings with a metastore's folder relative to the working directory, like Spark's warehouse.

    Derby itself would put it into its home, which is private to this process and removed with it.
    """
    if _METASTORE not in conf:
        return conf
    url = str(conf[_METASTORE])
    return {**conf, _METASTORE: _RELATIVE.sub(lambda match: str(Path(match[0]).absolute()), url)}


def start_settings(
    name: str,
    conf: Mapping[str, object],
    jars: Sequence[Path],
    private: Path,
    executors: Sequence[Setting] = (),
) -> list[Setting]:
    """Return all settings of a start: ours, then the user's `conf`, which takes precedence.

    `private` is a folder that only this user can read, for spilled data and Spark's other files. `executors` are
    settings of ours that depend on the archive of classes. Raises InvalidInput for a setting that may not be set.
    """
    for key in conf:
        if key in REFUSED:
            raise InvalidInput(f"{key} cannot be set", REFUSED[key])
    user_settings = {key: to_text(value) for key, value in conf.items()}
    # `run --verbose` prints all settings.
    protect_secrets(user_settings)
    cores = _count_cores(user_settings)
    own_settings = [
        Setting("spark.master", f"local[{cores}]", "one task for each core of this machine"),
        Setting("spark.app.name", name, "the pipeline's name"),
        Setting("spark.driver.memory", f"{heap_mib()}m", "a quarter of this machine's memory, 1 to 8 GiB"),
        Setting(
            "spark.driver.defaultJavaOptions",
            OPTIMISING_COMPILER,
            "the JVM optimises what processes many rows, and spends no third of its CPU on small batches",
        ),
        *_result_settings(user_settings.get("spark.driver.memory", f"{heap_mib()}m")),
        *_sql_settings(cores),
        *_connector_settings(),
        *_private_settings(private),
        *executors,
    ]
    if jars and not is_local(user_settings.get("spark.master", "local")):
        paths = ",".join(map(str, jars))
        own_settings.append(Setting("spark.jars", paths, "executors fetch the locked jars from the driver"))
    merged = {setting.key: setting for setting in own_settings}
    for key, value in user_settings.items():
        if key in ADDED or (key == "spark.jars" and key in merged):
            value = ",".join(dict.fromkeys([*merged[key].value.split(","), *value.split(",")]))
        merged[key] = Setting(key, value, "set by you")
    return list(merged.values())


def default_settings(conf: Mapping[str, object]) -> dict[str, str]:
    """Return our settings for Spark SQL in a session with the settings `conf`, which take precedence."""
    cores = _count_cores({key: to_text(value) for key, value in conf.items()})
    return {setting.key: setting.value for setting in _sql_settings(cores)}


def with_remote_checkpoints(conf: Mapping[str, object], folders: Sequence[str]) -> Mapping[str, object]:
    """Return the settings of a run with the class that writes Spark's files in checkpoints on these folders.

    Raises InvalidInput if a spec names another class than that for checkpoints on S3.
    """
    if any(folder.startswith(S3_SCHEME) for folder in folders):
        conf = {**S3_CHECKPOINTS, **conf}
        require_file_manager(conf.get, folders)
        return conf
    is_remote = any("://" in folder for folder in folders)
    return {**(REMOTE_CHECKPOINTS if is_remote else {}), **conf}


def require_file_manager(read_setting: Callable[[str], object], folders: Sequence[str]) -> None:
    """Raise InvalidInput if a setting lets another class write checkpoints on S3 than the one that may."""
    chosen = read_setting(_FILE_MANAGER_SETTING)
    if chosen != S3_CHECKPOINTS[_FILE_MANAGER_SETTING] and any(
        folder.startswith(S3_SCHEME) for folder in folders
    ):
        raise InvalidInput(
            f"{_FILE_MANAGER_SETTING} cannot be {chosen} with a checkpoint on S3: two runs could write one file",
            "remove the setting",
        )


def uses_s3(conf: Mapping[str, object]) -> bool:
    """Return whether a setting is of Hadoop's client of S3, whose jars the session then needs."""
    return any(key.startswith(S3_SETTINGS) for key in conf)


def protect_secrets(conf: Mapping[str, object]) -> None:
    """Redact the values of settings whose names say that they are secrets."""
    protect_settings({key: value for key, value in conf.items() if not NOT_SECRET_NAME.search(key)})


def is_local(master: str) -> bool:
    """Return whether this master runs its executors inside the driver's own JVM."""
    return master == "local" or master.startswith("local[")


def is_on_loopback(master: str) -> bool:
    """Return whether driver and executors reach each other on 127.0.0.1, so that none listens elsewhere."""
    return is_local(master) or bool(_LOOPBACK.match(master))


def without_secret(conf: Mapping[str, object]) -> dict[str, object]:
    """Return the settings without the cluster's secret, which only a context that starts may see."""
    return {key: value for key, value in conf.items() if not key.startswith(SECRET)}


def read_secret(conf: Mapping[str, object]) -> Mapping[str, object]:
    """Return the settings with the cluster's secret in place of its file, which Spark reads on Kubernetes only.

    A local session needs no secret, so that a spec is checked and tested where there is no file. Raises NotReady if
    the file cannot be read.
    """
    path, master = conf.get(_SECRET_FILE), str(conf.get("spark.master", "local"))
    if path is None or master.startswith("k8s:"):
        return conf
    if is_local(master):
        return without_secret(conf)
    try:
        secret = Path(str(path)).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise NotReady(
            f"the cluster's secret in {path} cannot be read: {error.strerror}",
            f"correct {_SECRET_FILE}; the secret of a local cluster exists while 'millstream up --workers' runs",
        ) from error
    return {**{key: value for key, value in conf.items() if key != _SECRET_FILE}, SECRET: secret}


def heap_mib() -> int:
    """Return the driver's heap in MiB."""
    return max(LEAST_HEAP, min(MOST_HEAP, resources.available_memory() // resources.MIB // 4))


def _result_settings(heap: str) -> list[Setting]:
    """Return the limit for the rows of a job that come to the driver, given the size of its heap."""
    match = _SIZE.match(heap.strip().lower())
    if match is None:
        return []
    mib = int(int(match["number"]) * _MIB[match["unit"] or "m"])
    limit = max(1, min(_MOST_RESULTS, mib // 4))
    return [
        Setting(
            "spark.driver.maxResultSize",
            f"{limit}m",
            "a quarter of the driver's heap, at most 1 GiB: a job whose results fill the heap never ends",
        )
    ]


def _sql_settings(cores: int) -> list[Setting]:
    return [
        Setting("spark.sql.shuffle.partitions", str(cores), "one for each core; 200 cost seconds a batch"),
        Setting(
            "spark.sql.legacy.parameterSubstitution.constantsOnly",
            "true",
            "named parameters are bound in the plan; put into the text they were left unbound",
        ),
        Setting("spark.sql.session.timeZone", "UTC", "a pipeline gives the same results on every machine"),
        Setting(
            "spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS", "other readers see instants in UTC"
        ),
        Setting(
            "spark.sql.streaming.checkpointFileManagerClass",
            FILE_MANAGER,
            "a batch starts a fifth of the processes",
        ),
        Setting(
            "spark.hadoop.fs.file.impl", LOCAL_FILES, "reading a link or setting a mode starts no process"
        ),
        Setting(
            "spark.sql.streaming.stopTimeout",
            "10s",
            "a batch that ignores its interruption does not hold up the end of a run; Spark would wait forever",
        ),
        Setting(
            "spark.sql.streaming.numRecentProgressUpdates",
            "20",
            "memory: a report has the dead letters of its batch; a hundred were kept",
        ),
        *(
            Setting(
                key, value, "a batch with files on HDFS waits milliseconds for a data node's report, not 400"
            )
            for key, value in HDFS_CLIENT.items()
        ),
        Setting(ROCKSDB_CHANGES, "true", "if state is in RocksDB, a batch writes only what changed"),
        Setting(
            "spark.rdd.cache.visibilityTracking.enabled",
            "true",
            "the metrics of a task that failed after it had cached its rows are counted by the next one",
        ),
        Setting("spark.scheduler.mode", "FAIR", "no query waits for another query's whole batch"),
        Setting("spark.ui.enabled", "false", "Spark's own page serves everyone without authentication"),
        Setting("spark.sql.ui.explainMode", "simple", "each job describes its plan to that page"),
        Setting("spark.ui.showConsoleProgress", "false", "the terminal belongs to the pipeline"),
        Setting("spark.sql.execution.arrow.pyspark.enabled", "true", "rows travel to Python in columns"),
        Setting("spark.redaction.regex", _SECRET_NAMES, "settings with these names are not written to logs"),
        Setting(
            "spark.sql.redaction.options.regex", f"{_SECRET_NAMES}|url", "nor are such options shown in plans"
        ),
        Setting("spark.redaction.string.regex", _URL_USER_INFO, "nor are passwords in URLs, in any text"),
    ]


def _connector_settings() -> list[Setting]:
    """Return the settings of the files `session.toml` in the connectors' folders, folder by folder."""
    settings: dict[str, Setting] = {}
    for file in sorted(CONNECTORS.glob("*/session.toml")):
        for key, setting in tomllib.loads(file.read_text(encoding="utf-8")).items():
            value = setting["value"]
            if key in ADDED and key in settings:
                value = f"{settings[key].value},{value}"
            settings[key] = Setting(key, value, setting["reason"])
    return list(settings.values())


def _private_settings(private: Path) -> list[Setting]:
    reason = "spilled rows and state stay in a folder that only you can read"
    return [
        Setting("spark.local.dir", str(private / "local"), reason),
        Setting(
            "spark.sql.warehouse.dir", str(private / "warehouse"), "no folder appears next to the pipeline"
        ),
    ]


def _count_cores(user_settings: Mapping[str, str]) -> int:
    """Return the cores of the run: those that it may use of a cluster, if a setting says so, else of this machine."""
    master, most = user_settings.get("spark.master", ""), user_settings.get("spark.cores.max", "")
    if most.isdigit() and not is_local(master):
        return int(most)
    inside = master.removeprefix("local[").split(",")[0].rstrip("]")
    return int(inside) if master.startswith("local[") and inside.isdigit() else resources.available_cores()


def to_text(value: object) -> str:
    """Return the value of a setting as Spark reads it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
