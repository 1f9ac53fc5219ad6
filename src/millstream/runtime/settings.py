"""The settings a session starts with, each with the reason it is set."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from millstream.diagnostics.failure import WrongUse
from millstream.runtime import machine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# A quarter of the memory, within these bounds, in MiB: state of RocksDB, Python workers and the page
# cache need the rest, and a heap above 8 GiB mostly makes one collection longer.
LEAST_HEAP, MOST_HEAP = 1024, 8192

# Each of these settings names code that the JVM would fetch and run without a sum to verify it by.
UNLOCKED = "jars are locked by sha256; put the file on this machine and name it in spark.jars"
REFUSED = {"spark.jars.packages": UNLOCKED, "spark.jars.repositories": UNLOCKED}

# Values that are added to ours rather than replacing them.
ADDED = ("spark.sql.extensions",)

# Spark's default asks the shell about each file it renames. This one relies on nobody else writing the folder,
# which the checkpoint's lock sees to; a crash leaves a whole file or none, as the default does.
FILE_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"

ROCKSDB_CHANGES = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"

HIDDEN = "(?i)secret|passw|token|credential|jaas|access[.]?key"


class Setting(NamedTuple):
    """One Spark setting and why it has that value."""

    key: str
    value: str
    reason: str


# The folder of a Hive metastore that Derby keeps, where it is relative.
_METASTORE = "spark.hadoop.javax.jdo.option.ConnectionURL"
_RELATIVE = re.compile(r"(?<=^jdbc:derby:;databaseName=)(?!/)[^;]+")


def with_lasting_metastore(conf: Mapping[str, object]) -> Mapping[str, object]:
    """The settings with a metastore's folder by the working directory, as Spark takes its warehouse.

    Derby by itself begins at its home, which is private to this process and goes with it.
    """
    if _METASTORE not in conf:
        return conf
    given = str(conf[_METASTORE])
    return {**conf, _METASTORE: _RELATIVE.sub(lambda found: str(Path(found[0]).absolute()), given)}


def start_settings(
    name: str, conf: Mapping[str, object], jars: Sequence[Path], private: Path
) -> list[Setting]:
    """All settings of a start: ours, then the user's `conf`, which wins.

    `private` is a folder only this user can read, for what Spark spills and stores beside the data.
    Raises WrongUse for a setting that may not be set.
    """
    for key in conf:
        if key in REFUSED:
            raise WrongUse(f"{key} cannot be set", REFUSED[key])
    given = {key: _text(value) for key, value in conf.items()}
    cores = _cores(given.get("spark.master", ""))
    ours = [
        Setting("spark.master", f"local[{cores}]", "one task for each core of this machine"),
        Setting("spark.app.name", name, "the pipeline's name"),
        Setting("spark.driver.memory", f"{heap()}m", "a quarter of this machine's memory, 1 to 8 GiB"),
        *_sql(cores),
        *_delta(),
        *_private(private),
    ]
    if not local(given.get("spark.master", "local")):
        paths = ",".join(map(str, jars))
        ours.append(Setting("spark.jars", paths, "executors fetch the locked jars from the driver"))
    merged = {setting.key: setting for setting in ours}
    for key, value in given.items():
        if key in ADDED or (key == "spark.jars" and key in merged):
            value = ",".join(dict.fromkeys([*merged[key].value.split(","), *value.split(",")]))
        merged[key] = Setting(key, value, "set by you")
    return list(merged.values())


def local(master: str) -> bool:
    """Does this master run its executors inside the driver's own JVM?"""
    return master == "local" or master.startswith("local[")


def heap() -> int:
    """The driver's heap in MiB."""
    return max(LEAST_HEAP, min(MOST_HEAP, machine.memory() // machine.MIB // 4))


def _sql(cores: int) -> list[Setting]:
    return [
        Setting("spark.sql.shuffle.partitions", str(cores), "one for each core; 200 cost seconds a batch"),
        Setting(
            "spark.sql.legacy.parameterSubstitution.constantsOnly",
            "true",
            "named parameters are bound in the plan; put into the text they were left unbound",
        ),
        Setting("spark.sql.session.timeZone", "UTC", "one pipeline gives one answer on every machine"),
        Setting(
            "spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS", "other readers see instants in UTC"
        ),
        Setting(
            "spark.sql.streaming.checkpointFileManagerClass",
            FILE_MANAGER,
            "a batch forks a fifth of the processes",
        ),
        Setting(
            ROCKSDB_CHANGES, "true", "where state is in RocksDB, a batch writes what changed and not all"
        ),
        Setting("spark.scheduler.mode", "FAIR", "no query waits for another query's whole batch"),
        Setting("spark.ui.enabled", "false", "Spark's own page answers without asking who reads it"),
        Setting("spark.ui.showConsoleProgress", "false", "the terminal belongs to the pipeline"),
        Setting("spark.sql.execution.arrow.pyspark.enabled", "true", "rows travel to Python in columns"),
        Setting("spark.redaction.regex", HIDDEN, "settings with these names are not written to logs"),
        Setting("spark.sql.redaction.options.regex", f"{HIDDEN}|url", "nor are such options shown in plans"),
    ]


def _delta() -> list[Setting]:
    reads = "Delta tables can be read and written"
    return [
        Setting("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension", reads),
        Setting("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog", reads),
        Setting("spark.databricks.delta.snapshotPartitions", "1", "50 tasks for a small log cost seconds"),
    ]


def _private(private: Path) -> list[Setting]:
    reason = "spilled rows and state stay in a folder that only you can read"
    return [
        Setting("spark.local.dir", str(private / "local"), reason),
        Setting("spark.sql.warehouse.dir", str(private / "warehouse"), "nothing appears beside the pipeline"),
    ]


def _cores(master: str) -> int:
    inside = master.removeprefix("local[").split(",")[0].rstrip("]")
    return int(inside) if master.startswith("local[") and inside.isdigit() else machine.cores()


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
