"""Keep a local Delta table small: few files, a short log, and no files that the table no longer has.

Each batch adds an entry to the log and, mostly, a file. Without this, a commit takes the longer the more there are.
"""

from __future__ import annotations

import logging
import re
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import CommitProperties, PostCommitHookProperties

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from deltalake import DeltaTable, WriterProperties

INTERVAL = 50
"""Versions of a table from one maintenance to the next."""
SMALL_FILE, LARGE_FILE = 8 << 20, 128 << 20
"""Bytes of a file that small files are merged into, and of one that those are merged into."""
MOST_SMALL, MOST_MEDIUM = 32, 16
"""Number of files of less than half of `SMALL_FILE`, and of others below half of `LARGE_FILE`, that are left as they
are."""
MOST_BYTES, MOST_FILES = 2 << 30, 20_000
"""Bytes and files that are merged at most, so that no batch waits for minutes. Only a table that was not maintained
before has more."""
DELETION_INTERVAL = 600.0
"""Seconds from one look for files that the table no longer has to the next. It lists the table's folder."""
FILE_RETENTION = "delta.deletedFileRetentionDuration"
"""Property with the time after which files of old versions may be deleted."""
SHORT_HISTORY = {
    FILE_RETENTION: "interval 1 hour",
    "delta.logRetentionDuration": "interval 1 hour",
}
"""Properties of a table whose batches replace files: it would have the bytes of each of its versions for a week."""
WITHOUT_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
"""Settings of a commit to a table that is maintained here: delta-rs would list the whole log after each one."""

DAY = 86_400.0
"""Seconds of a day."""

_DATA_FILE = re.compile(r"part-\d{5}-[^/]+\.parquet")
_CHECKSUM = re.compile(r"\.?(\d{20})\..*crc")
_COMMIT = re.compile(r"(\d{20})\.json")

_log = logging.getLogger(__name__)


class TableMaintenance:
    """Maintains one table. The caller holds the table's lock.

    `properties` are set if the table does not have them. Files in no entry of the log are deleted when they are
    `least_age` seconds old, or as old as `delta.deletedFileRetentionDuration`, whichever is longer: files of a commit
    that is being prepared are in no entry either, unless the lock is held for the whole of it.
    """

    def __init__(
        self, folder: Path, properties: Mapping[str, str] | None = None, least_age: float = 0.0
    ) -> None:
        self._folder, self._properties, self._least_age = folder, dict(properties or {}), least_age
        self._next_deletion = 0.0

    def run_if_due(self, table: DeltaTable, writer_properties: WriterProperties | None = None) -> bool:
        """Maintain the table if its version is one after which that is due; return whether it was."""
        if not is_due(table.version()):
            return False
        self.run(table, writer_properties)
        return True

    def run(self, table: DeltaTable, writer_properties: WriterProperties | None = None) -> None:
        """Maintain the table. A failure is logged."""
        with self.logging_failures():
            self._run(table, writer_properties)

    @contextmanager
    def logging_failures(self) -> Iterator[None]:
        """Log an exception instead of raising it.

        A batch is committed before its table is maintained, so that a failure is no failure of the batch. The next
        maintenance tries again.
        """
        try:
            yield
        except Exception:  # noqa: BLE001 - deltalake raises its own errors and Python's
            _log.warning("the Delta table %s could not be maintained", self._folder, exc_info=True)

    def _run(self, table: DeltaTable, writer_properties: WriterProperties | None) -> None:
        configuration = table.metadata().configuration
        absent = {name: value for name, value in self._properties.items() if name not in configuration}
        if absent:
            table.alter.set_table_properties(absent)
        try:
            merge_small_files(table, writer_properties)
        finally:
            table.create_checkpoint()
        if configuration.get("delta.enableExpiredLogCleanup", "true").lower() == "true":
            table.cleanup_metadata()
            _delete_checksums(self._folder / "_delta_log")
        # In a table without the property, which another program created, only its owner may delete old versions.
        if FILE_RETENTION in {**configuration, **absent} and time.monotonic() >= self._next_deletion:
            self._next_deletion = time.monotonic() + DELETION_INTERVAL
            delete_absent_files(table, self._folder, None, self._least_age)


def is_due(version: int) -> bool:
    """Return whether the writer of this version has to maintain the table.

    Of several writers only one has the version. If a maintenance itself or another tool makes it, the next one does.
    """
    return version > 0 and version % INTERVAL == 0


def merge_small_files(table: DeltaTable, writer_properties: WriterProperties | None = None) -> None:
    """Merge small files into larger ones, if there are many, in one commit that changes no row.

    A commit of another writer in between wins: nothing is merged.
    """
    actions: Any = pa.table(table.get_add_actions(flatten=True))
    sizes = actions["size_bytes"].to_pylist()
    target = _target_size(sizes)
    smaller = [size for size in sizes if size < target]
    if sum(smaller) > MOST_BYTES or len(smaller) > MOST_FILES:
        _log.warning(
            "%s has too many small files to merge them during a run: run OPTIMIZE once", table.table_uri
        )
        return
    if target:
        table.optimize.compact(
            target_size=target,
            # Each task has a file's rows in memory.
            max_concurrent_tasks=1,
            writer_properties=writer_properties,
            commit_properties=CommitProperties(max_commit_retries=0),
            post_commithook_properties=WITHOUT_HOOKS,
        )


def _target_size(sizes: Sequence[int]) -> int:
    """Return the size of files to merge into, or 0 if there are few files that could be merged.

    Two levels, so that a row is written again some ten times until it is in a large file, not once each time.
    """
    small = sum(size < SMALL_FILE // 2 for size in sizes)
    medium = sum(SMALL_FILE // 2 <= size < LARGE_FILE // 2 for size in sizes)
    if medium > MOST_MEDIUM:
        return LARGE_FILE
    return SMALL_FILE if small > MOST_SMALL else 0


def delete_absent_files(
    table: DeltaTable, folder: Path, retention_hours: int | None, least_age: float = 0.0
) -> None:
    """Delete the table's files that its current version does not have, and those of killed commits.

    `retention_hours` are those since a file was removed from the table, or since it was written if it is in no entry
    of the log; None for the table's property. Only files with a name that writers of Delta give, directly in the
    table's folder, and only ones that are at least `least_age` seconds old.
    """
    actions: Any = pa.table(table.get_add_actions(flatten=True))
    current = set(actions["path"].to_pylist())
    absent = table.vacuum(retention_hours, dry_run=True, enforce_retention_duration=False, full=True)
    newest = time.time() - least_age
    for name in absent:
        file = folder / name
        if _DATA_FILE.fullmatch(name) and name not in current and _modification_time(file) <= newest:
            file.unlink(missing_ok=True)
            # The sum that Hadoop's file system stores beside each file.
            (folder / f".{name}.crc").unlink(missing_ok=True)


def _modification_time(file: Path) -> float:
    """Return when a file was written, in seconds since 1970; 0 if someone else has deleted it."""
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _delete_checksums(log: Path) -> None:
    """Delete the checksums of log entries that have been deleted, which delta-rs leaves."""
    names = [entry.name for entry in log.iterdir()]
    versions = [int(match[1]) for name in names if (match := _COMMIT.fullmatch(name))]
    oldest = min(versions, default=0)
    for name in names:
        if (match := _CHECKSUM.fullmatch(name)) and int(match[1]) < oldest:
            (log / name).unlink(missing_ok=True)
