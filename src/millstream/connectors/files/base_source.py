"""Base class of file sources: the folder, which files are read, and how many a batch reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from urllib.parse import unquote, urlsplit

from pydantic import Field

from millstream.checkpoint.file_source_log import READ_BEFORE
from millstream.connectors.api.source import Source
from millstream.connectors.api.values.lineage_dataset import LineageDataset, dataset_of_folder
from millstream.connectors.api.values.offsets import StartFiles, StartPosition
from millstream.connectors.api.values.problem import Problem
from millstream.connectors.api.values.replay_behaviour import Replayability, ReplayBehaviour
from millstream.connectors.files.sandbox_io import write_atomically
from millstream.diagnostics.failure import NotReady
from millstream.spark import internals
from millstream.spec.duration import Duration
from millstream.spec.location import Location

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.api.values.offsets import OffsetRange
    from millstream.connectors.api.values.sandbox import Sandbox

_OPTION_FIELDS = {
    "path": "path",
    "maxfilespertrigger": "max_files_per_trigger",
    "maxfileage": "max_file_age",
    "latestfirst": "latest_first",
    "filenameonly": "file_name_only",
    "recursivefilelookup": "recursive_file_lookup",
    "pathglobfilter": "path_glob_filter",
    "cleansource": "clean_source",
    "sourcearchivedir": "archive_to",
    "columnnameofcorruptrecord": "on_malformed, which stores malformed rows as dead letters",
    "mode": "on_malformed, which stores malformed rows as dead letters",
}

_SKIPPED = {
    "ignorecorruptfiles": "files that cannot be read",
    "ignoremissingfiles": "files that are deleted before they are read",
}


# Spark's default of 7 days would silently skip a file that arrives late with an old modification time, as from rsync,
# tar or a restore. The cost is driver memory: Spark remembers every file that it has read.
_NO_AGE = "100000d"


class FilesSource(Source):
    """Base of the kinds that read a folder of files."""

    main = "path"
    can_read_once = True
    is_replayable = True

    form: ClassVar[str]
    """Spark's name of the file format."""
    fixed: ClassVar[tuple[str, ...]] = ()
    """Options that the settings of a kind set themselves."""

    path: Location = Field(examples=["data/orders"])
    """Folder of the files, or a pattern such as `data/2026-*`. Files must appear in it complete, by a rename."""
    max_files_per_trigger: int | None = Field(default=None, ge=1)
    """Maximum number of files per batch. Default: all available files."""
    max_file_age: Duration | None = None
    """Skip a file that is more than this older than the newest file read so far. Default: no limit."""
    latest_first: bool = False
    """Read the newest files first, if there are more files than one batch reads."""
    file_name_only: bool = False
    """Identify a file by its name instead of its path, so that a moved file is not read again."""
    recursive_file_lookup: bool = False
    """Also read subfolders; folders such as `day=2026-01-01` then add no column."""
    path_glob_filter: str | None = Field(default=None, examples=["*.json"])
    """Read only files with a name that matches this pattern."""
    clean_source: Literal["off", "archive", "delete"] | None = None
    """What happens to a file after the batch that read it is committed."""
    archive_to: Location | None = None
    """Folder to which `clean_source: archive` moves files."""
    options: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Further options of Spark's reader for this format, by their names in Spark."""

    def read(self, spark: SparkSession, *, static: bool, schema: str | None) -> DataFrame:
        """Read the columns of `schema`, or for a static read those that Spark infers.

        Raises `NotReady` if the folder does not exist.
        """
        self._require_folder(static=static)
        reader: Any = (spark.read if static else spark.readStream).format(self.form)
        if schema is not None:
            reader = reader.schema(self.reader_schema(schema))
        return self.convert_frame(reader.options(**self._options(static=static)).load(str(self.path)), schema)

    def read_range(self, spark: SparkSession, offsets: OffsetRange, schema: str | None) -> DataFrame | None:
        """Read the rows of the files of one batch; None if it read none, or without a schema."""
        if schema is None or not offsets.files:
            return None
        reader = (
            spark.read.format(self.form)
            .schema(self.reader_schema(schema))
            .options(**self._options(static=True), **internals.PLAIN_PATHS)
        )
        if not self.recursive_file_lookup and not _is_pattern(str(self.path)):
            # Files given one by one have the columns of their folders, day=…, only below a base path.
            reader = reader.option("basePath", str(self.path))
        # The checkpoint has URLs, with %20 for a space; a reader takes paths.
        return self.convert_frame(reader.load([unquote(file) for file in offsets.files]), schema)

    def start_files(self, position: StartPosition) -> StartFiles | None:
        """List the files in the source's log under a number that no batch has, so that Spark skips them."""
        entries = [
            json.dumps({"path": path, "timestamp": timestamp, "batchId": READ_BEFORE})
            for path, timestamp in position.files
        ]
        return StartFiles("\n".join(["v1", *entries]), '{"logOffset":0}')

    def newest_position(self, spark: SparkSession, schema: str | None) -> StartPosition | None:
        """Return the files that are in the folder; None if it does not exist on this machine."""
        if self.path.local is None:
            return None
        paths = self.read(spark, static=True, schema=schema).inputFiles()
        times = [Path(unquote(urlsplit(path).path)).stat().st_mtime_ns // 1_000_000 for path in paths]
        return StartPosition(files=tuple(zip(paths, times, strict=True)))

    def reader_schema(self, schema: str) -> str:
        """Return the schema for the reader, as DDL."""
        return schema

    def convert_frame(self, frame: DataFrame, schema: str | None) -> DataFrame:  # noqa: ARG002 - for kinds that add columns
        """Convert the frame that was opened to the result of `read`."""
        return frame

    def in_sandbox(self, sandbox: Sandbox) -> Source | None:
        """Use a sandbox folder from which nothing is removed; None for a pattern of folders."""
        if _is_pattern(str(self.path)):
            return None
        reset = {"clean_source": None, "archive_to": None, "latest_first": False, "path_glob_filter": None}
        return self.model_copy(update={"path": sandbox.path(str(self.path)), **reset})

    def _write_portion(self, number: int, write: Callable[[Path], object]) -> None:
        """Write a portion's file, and put it into the folder by a rename."""
        local = self.path.local
        assert local is not None, "a sandbox is a local folder"
        write_atomically(local, f"portion-{number:06}.{self.form}", write)

    def replay(self, *, static: bool) -> ReplayBehaviour:
        """Replay the files named in the checkpoint, which must be unchanged."""
        enabled = {key.lower(): key for key, value in self.options.items() if _option_text(value) == "true"}
        for option in ("ignoremissingfiles", "ignorecorruptfiles"):
            if option in enabled:
                return ReplayBehaviour(
                    Replayability.NONE,
                    f"skips files silently ({enabled[option]}: true)",
                    "options",
                )
        if static:
            return ReplayBehaviour(
                Replayability.CONDITIONAL, "its files must not change between a batch and its replay"
            )
        condition = "no file of it may be changed in place"
        if self.max_file_age is not None:
            condition += f", and none may arrive that is more than {self.max_file_age} older than the newest"
        return ReplayBehaviour(Replayability.CONDITIONAL, condition)

    def problems(self) -> list[Problem]:
        """Check for conflicting settings, and for options that a field sets."""
        problems = [
            Problem(
                "options", f"option '{key}' has its own setting", f"write it as {_OPTION_FIELDS[key.lower()]}"
            )
            for key in self.options
            if key.lower() in _OPTION_FIELDS
        ]
        if self.latest_first and self.max_file_age is not None and self.max_files_per_trigger is not None:
            problems.append(
                Problem(
                    "max_file_age",
                    "Spark ignores max_file_age when latest_first and max_files_per_trigger are set",
                    "remove one of the three",
                )
            )
        if (self.clean_source == "archive") != (self.archive_to is not None):
            problems.append(
                Problem("clean_source", "clean_source: archive needs a folder", "add archive_to: FOLDER")
                if self.archive_to is None
                else Problem(
                    "archive_to",
                    "archive_to has no effect without clean_source: archive",
                    "add clean_source: archive",
                )
            )
        return problems

    def data_loss_problems(self) -> list[Problem]:
        """Report options with which Spark skips files that it cannot read."""
        return [
            Problem(
                "options",
                f"'{key}' silently skips {skipped}",
                "remove this option; the query then stops at such a file, and the error message names the file",
                "the rows of such a file are never read, and no metric counts them",
                key,
                "false",
            )
            for key, value in self.options.items()
            if (skipped := _SKIPPED.get(key.lower())) and _option_text(value).lower() == "true"
        ]

    def omission_problems(self) -> list[Problem]:
        """Report `max_file_age`, with which some files are never read."""
        if self.max_file_age is None:
            return []
        return [
            Problem(
                "max_file_age",
                f"a file that arrives late and is more than {self.max_file_age} older than the newest file is "
                f"never read",
                "remove max_file_age, unless such files are meant to be skipped",
                "rsync, tar and a restore keep the old time of a file; skipped files are neither counted nor "
                "reported",
            )
        ]

    def has_batch_limit(self) -> bool:
        """Return whether `max_files_per_trigger` or Spark's `maxBytesPerTrigger` is set."""
        return self.max_files_per_trigger is not None or "maxbytespertrigger" in map(str.lower, self.options)

    def may_read_newest_first(self) -> bool:
        """Return whether `latest_first` is set, and files may exceed one batch."""
        return self.latest_first and self.has_batch_limit()

    def removes_read_files(self) -> bool:
        """Return whether `clean_source` removes files."""
        return self.clean_source in ("archive", "delete")

    def reads_from(self) -> frozenset[str]:
        """Return the folder; a pattern names none."""
        return frozenset() if _is_pattern(str(self.path)) else frozenset({str(self.path)})

    def datasets(self) -> tuple[LineageDataset, ...]:
        """Return the folder or the pattern."""
        return (dataset_of_folder(str(self.path)),)

    def identity(self) -> dict[str, str]:
        """Return format and path."""
        return {"kind": self.kind, "path": str(self.path)}

    def probe(self) -> dict[str, str]:
        """Raise `NotReady` if a local folder does not exist."""
        self._require_folder(static=True)
        return {}

    def _require_folder(self, *, static: bool) -> None:
        """Raise `NotReady` for a missing local folder; Spark itself reports those of other file systems.

        Also for a folder that Spark would not find, because it takes its name for a pattern.
        """
        local = self.path.local
        if local is None:
            return
        if _is_pattern(str(self.path)):
            if local.exists():
                raise NotReady(
                    f"Spark reads the path '{local}' as a pattern, because it contains *, ?, [ or {{",
                    "rename the folder whose name contains this character; it may be a folder above the project",
                )
            return
        if local.exists():
            return
        raise NotReady(
            f"the folder '{local}' that {self.kind} reads does not exist" + ("" if static else " yet"),
            f"create it: mkdir -p {local}" if not static else "put the files there, or correct the path",
        )

    def _options(self, *, static: bool) -> dict[str, str]:
        """Return the options of Spark's reader."""
        options = {key: _option_text(value) for key, value in self.options.items()}
        options |= {"recursiveFileLookup": "true"} if self.recursive_file_lookup else {}
        options |= {"pathGlobFilter": self.path_glob_filter} if self.path_glob_filter else {}
        if static:
            return options
        stream = {
            "maxFilesPerTrigger": self.max_files_per_trigger,
            "maxFileAge": _NO_AGE if self.max_file_age is None else f"{self.max_file_age.micros // 1000}ms",
            "latestFirst": self.latest_first or None,
            "fileNameOnly": self.file_name_only or None,
            "cleanSource": self.clean_source,
            "sourceArchiveDir": self.archive_to,
        }
        return options | {key: _option_text(value) for key, value in stream.items() if value is not None}


def _option_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_pattern(path: str) -> bool:
    """Return whether the path is a pattern of folders."""
    return any(wildcard in path for wildcard in "*?[{")
