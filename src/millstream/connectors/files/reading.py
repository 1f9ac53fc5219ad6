"""What all sources of files share: where files are, which of them count, how many a batch takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal
from urllib.parse import unquote

from pydantic import Field

from millstream.connectors.dataset import Dataset, of_place
from millstream.connectors.files.feeding import put
from millstream.connectors.source import OffsetRange, Problem, Replay, Replays, Source
from millstream.diagnostics.failure import NotReady
from millstream.spec.duration import Duration
from millstream.spec.location import Location

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.elsewhere import Place

_FIELDS = {
    "path": "path",
    "maxfilespertrigger": "max_files_per_trigger",
    "maxfileage": "max_file_age",
    "latestfirst": "latest_first",
    "filenameonly": "file_name_only",
    "recursivefilelookup": "recursive_file_lookup",
    "pathglobfilter": "path_glob_filter",
    "cleansource": "clean_source",
    "sourcearchivedir": "archive_to",
    "columnnameofcorruptrecord": "on_malformed, which sets malformed rows aside",
    "mode": "on_malformed, which sets malformed rows aside",
}

_PASSED_OVER = {
    "ignorecorruptfiles": "files that cannot be read",
    "ignoremissingfiles": "files that are gone before they are read",
}


class FilesSource(Source):
    """Base of the kinds that read a folder of files."""

    main = "path"
    static = True
    replayable = True

    form: ClassVar[str]
    """Spark's name of the file format."""
    fixed: ClassVar[tuple[str, ...]] = ()
    """Options that the settings of a kind give themselves."""

    path: Location = Field(examples=["data/orders"])
    """The folder, or a pattern such as `data/2026-*`. Files must appear in it whole, by a rename."""
    max_files_per_trigger: int | None = Field(default=None, ge=1)
    """At most this many files a batch; all that are there unless given."""
    max_file_age: Duration | None = None
    """Files older than the newest one by more than this are passed over; Spark's 7 days unless given."""
    latest_first: bool = False
    """Read the newest files first, when there are more than a batch takes."""
    file_name_only: bool = False
    """Know a file by its name and not by its path: one that was moved is not read again."""
    recursive_file_lookup: bool = False
    """Read subfolders too; folders such as `day=2026-01-01` then give no column."""
    path_glob_filter: str | None = Field(default=None, examples=["*.json"])
    """Read only files whose name matches this pattern."""
    clean_source: Literal["off", "archive", "delete"] | None = None
    """What becomes of a file once its batch is committed."""
    archive_to: Location | None = None
    """Where `clean_source: archive` moves files."""
    options: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Further options of Spark's reader of this format, by Spark's names."""

    def read(self, spark: SparkSession, *, static: bool, schema: str | None) -> DataFrame:
        """The files' columns: those of `schema`, or for a static read what Spark finds in the files.

        Raises `NotReady` when a static read finds no folder, or a stream's folder does not exist yet.
        """
        self._present(static=static)
        reader: Any = (spark.read if static else spark.readStream).format(self.form)
        if schema is not None:
            reader = reader.schema(self.asked(schema))
        return self.given(reader.options(**self._options(static=static)).load(str(self.path)), schema)

    def read_range(self, spark: SparkSession, offsets: OffsetRange, schema: str | None) -> DataFrame | None:
        """The rows of the files that one batch read; None when it read none, or has no schema to read by."""
        if schema is None or not offsets.files:
            return None
        reader = spark.read.format(self.form).schema(self.asked(schema)).options(**self._options(static=True))
        if not self.recursive_file_lookup and not _pattern(str(self.path)):
            # Files given one by one have the columns of their folders, day=…, only below a base.
            reader = reader.option("basePath", str(self.path))
        # The checkpoint keeps addresses, where a space is %20; a reader takes paths, where it is a space.
        return self.given(reader.load([unquote(file) for file in offsets.files]), schema)

    def asked(self, schema: str) -> str:
        """The schema that the reader is asked for, as DDL."""
        return schema

    def given(self, frame: DataFrame, schema: str | None) -> DataFrame:  # noqa: ARG002 - for kinds that add columns
        """What `read` gives of the frame that was opened."""
        return frame

    def elsewhere(self, place: Place) -> Source | None:
        """A folder of its own, nothing of which is taken away; None for a pattern of folders."""
        if _pattern(str(self.path)):
            return None
        kept = {"clean_source": None, "archive_to": None, "latest_first": False, "path_glob_filter": None}
        return self.model_copy(update={"path": place.path(str(self.path)), **kept})

    def _put(self, number: int, write: Callable[[Path], object]) -> None:
        """Have the file of a portion written, and put it into the folder by a rename."""
        local = self.path.local
        assert local is not None, "moved below a folder of this machine"
        put(local, f"portion-{number:06}.{self.form}", write)

    def replay(self, *, static: bool) -> Replay:
        """A batch's files are named in the checkpoint, and must still be what they were."""
        passed = {key.lower(): key for key, value in self.options.items() if _text(value) == "true"}
        for option in ("ignoremissingfiles", "ignorecorruptfiles"):
            if option in passed:
                return Replay(
                    Replays.NONE, f"passes over files without a word ({passed[option]}: true)", "options"
                )
        if static:
            return Replay(Replays.CONDITIONAL, "its files must not change between a batch and its repetition")
        return Replay(Replays.CONDITIONAL, "no file of it may be changed in place")

    def problems(self) -> list[Problem]:
        """Settings that exclude each other, and options that have a field of their own."""
        found = [
            Problem(
                "options", f"option '{key}' has a field of its own", f"write it as {_FIELDS[key.lower()]}"
            )
            for key in self.options
            if key.lower() in _FIELDS
        ]
        if self.latest_first and self.max_file_age is not None and self.max_files_per_trigger is not None:
            found.append(
                Problem(
                    "max_file_age",
                    "Spark ignores max_file_age when latest_first and max_files_per_trigger are set",
                    "leave out one of the three",
                )
            )
        if (self.clean_source == "archive") != (self.archive_to is not None):
            found.append(
                Problem("clean_source", "clean_source: archive needs a place", "add archive_to: FOLDER")
                if self.archive_to is None
                else Problem("archive_to", "nothing is moved to archive_to", "add clean_source: archive")
            )
        return found

    def losses(self) -> list[Problem]:
        """Options by which Spark passes over files that it cannot read."""
        return [
            Problem(
                "options",
                f"'{key}' passes over {what} without a word",
                "leave it out: the query then ends at such a file and says which",
                "rows of such a file are neither read nor counted, and no later batch reads them",
                key,
                "false",
            )
            for key, value in self.options.items()
            if (what := _PASSED_OVER.get(key.lower())) and _text(value).lower() == "true"
        ]

    def limited(self) -> bool:
        """With `max_files_per_trigger`, or Spark's option for bytes."""
        return self.max_files_per_trigger is not None or "maxbytespertrigger" in map(str.lower, self.options)

    def newest_first(self) -> bool:
        """With `latest_first`, when the files do not fit into one batch."""
        return self.latest_first and self.limited()

    def taken_away(self) -> bool:
        """With `clean_source`."""
        return self.clean_source in ("archive", "delete")

    def reads_from(self) -> frozenset[str]:
        """The folder; a pattern names none."""
        return frozenset() if _pattern(str(self.path)) else frozenset({str(self.path)})

    def datasets(self) -> tuple[Dataset, ...]:
        """The folder, or the pattern as it stands."""
        return (of_place(str(self.path)),)

    def identity(self) -> dict[str, str]:
        """The format and the path."""
        return {"kind": self.kind, "path": str(self.path)}

    def probe(self) -> dict[str, str]:
        """Raises `NotReady` when a local folder is missing."""
        self._present(static=True)
        return {}

    def _present(self, *, static: bool) -> None:
        """A missing folder in one sentence; other file systems than the local one answer for themselves."""
        local = self.path.local
        if local is None or local.exists() or _pattern(str(self.path)):
            return
        raise NotReady(
            f"the folder '{local}' that {self.kind} reads does not exist" + ("" if static else " yet"),
            f"make it: mkdir -p {local}" if not static else "put the files there, or correct the path",
        )

    def _options(self, *, static: bool) -> dict[str, str]:
        """Options of Spark's reader."""
        made = {key: _text(value) for key, value in self.options.items()}
        made |= {"recursiveFileLookup": "true"} if self.recursive_file_lookup else {}
        made |= {"pathGlobFilter": self.path_glob_filter} if self.path_glob_filter else {}
        if static:
            return made
        stream = {
            "maxFilesPerTrigger": self.max_files_per_trigger,
            "maxFileAge": self.max_file_age and f"{self.max_file_age.micros // 1000}ms",
            "latestFirst": self.latest_first or None,
            "fileNameOnly": self.file_name_only or None,
            "cleanSource": self.clean_source,
            "sourceArchiveDir": self.archive_to,
        }
        return made | {key: _text(value) for key, value in stream.items() if value is not None}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _pattern(path: str) -> bool:
    """Is it a pattern of folders, and not one folder?"""
    return any(sign in path for sign in "*?[{")
