"""Log the events of a run as JSON lines in segments: compressed when full, thinned when there are too many."""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import json
import os
import shutil
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import IO, TYPE_CHECKING

from millstream.engine.events.event_bus import Event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

# Bytes of a segment; compressing this much to a tenth takes a tenth of a second.
SEGMENT = 4_000_000
# Maximum compressed bytes of a log. A day of ten queries at a batch per second is some 130 MB.
MOST = 150_000_000
# A thinned segment has one batch of this many per query, and every other event.
EVERY = 10
# Number of ended runs that a project keeps.
RUNS = 30
# The file in the folder of a run that the run locks while its log is open.
LOCK = "lock"
# Number of bytes at the end of a log that are searched for the end of the run.
_TAIL = 65_536
# Number of last segments that a later run shows: at most some ten thousand batches.
LAST = 2
# Number of last segments of a past run that are read in full: half an hour at ten batches per second.
WHOLE = 8
_STARTED = '{"event": "query_started"'
_BATCHES = ('{"event": "batch_committed"', '{"event": "batch_written"', '{"event": "batch_started"')


@dataclass
class RunLog:
    """Writes the events of one run to its folder, which is locked until `close`. Used by one thread."""

    folder: Path
    segment: int = SEGMENT
    most: int = MOST
    heading: Callable[[], Iterable[str]] | None = None
    """The first lines of each segment but the first: the totals of the earlier segments."""
    _number: int = 0
    _size: int = 0
    _file: IO[str] | None = None
    _lock: IO[str] | None = None
    _thinned: set[str] = field(default_factory=set)

    def begin(self) -> None:
        """Open a segment, unless one is open. Raises `OSError`."""
        if self._file is None:
            self._open()

    def write(self, line: str) -> None:
        """Append one line and flush it. Raises `OSError`."""
        self.begin()
        assert self._file is not None
        self._file.write(line + "\n")
        self._file.flush()
        self._size += len(line) + 1
        if self._size >= self.segment:
            self._turn()

    def close(self) -> None:
        """Close the current segment without compressing it, and release the lock."""
        try:
            self._close_segment()
        finally:
            lock, self._lock = self._lock, None
            if lock is not None:
                lock.close()

    def abandon(self) -> None:
        """Close the current segment, whose last line may be incomplete; the next line begins another."""
        with contextlib.suppress(OSError):
            self._close_segment()

    def _close_segment(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _open(self) -> None:
        # Only the owner may read the log, because it may contain data of records.
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self._lock is None:
            self._lock = _lock(self.folder)
        self._number += 1
        self._size = 0
        path = self.folder / f"{self._number:06}.jsonl"
        self._file = os.fdopen(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
        )
        if self.heading is not None and self._number > 1:
            for line in self.heading():
                self._file.write(line + "\n")
                self._size += len(line) + 1

    def _turn(self) -> None:
        """Compress the full segment, and limit the size of the log."""
        self._close_segment()
        path = self.folder / f"{self._number:06}.jsonl"
        _pack(path, path.read_text(encoding="utf-8"))
        path.unlink()
        self._bound()
        if self.heading is not None:
            # Opened at once, because after the next event the totals would include it.
            self._open()

    def _bound(self) -> None:
        """Thin the older half of the segments, oldest first; if all are thin, delete the oldest."""
        packed = sorted(self.folder.glob("*.jsonl.gz"))
        size = {segment: segment.stat().st_size for segment in packed}
        while sum(size.values()) > self.most and len(packed) > 2:
            # Skips the first segment, which describes the run.
            unthinned = [
                segment for segment in packed[1 : 1 + len(packed) // 2] if segment.name not in self._thinned
            ]
            if unthinned:
                self._thinned.add(unthinned[0].name)
                _pack(unthinned[0].with_suffix(""), "".join(f"{line}\n" for line in _thin(unthinned[0])))
                size[unthinned[0]] = unthinned[0].stat().st_size
            else:
                oldest = packed.pop(1)
                oldest.unlink()
                del size[oldest]


def _pack(path: Path, text: str) -> None:
    """Write a compressed segment atomically."""
    target, temporary = path.with_name(path.name + ".gz"), path.with_name(path.name + ".making")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as raw:
        raw.write(gzip.compress(text.encode(), compresslevel=6, mtime=0))
    temporary.replace(target)


def _thin(segment: Path) -> Iterator[str]:
    """Yield the lines of a segment with every tenth batch of each query."""
    counts: dict[str, int] = {}
    for line in read_lines(segment):
        event = json.loads(line)
        if event["event"] in ("batch_committed", "batch_written", "batch_started"):
            key = event["event"] + event.get("query", "")
            counts[key] = counts.get(key, -1) + 1
            if counts[key] % EVERY:
                continue
        yield line


def read_lines(file: Path) -> Iterator[str]:
    """Yield the lines of a segment, without a last line that a crash truncated."""
    with (gzip.open if file.suffix == ".gz" else open)(file, "rt", encoding="utf-8") as text:
        for line in text:
            if line.endswith("\n"):
                yield line.rstrip("\n")


def read_events(place: Path) -> Iterator[tuple[int, Event]]:
    """Read the events of a run with their numbers, from its folder or from the output of `run --json`.

    Raises `OSError`, and `ValueError` for a line that is not an event.
    """
    return _numbered(_segments(place))


def read_thinned_events(place: Path) -> Iterator[tuple[int, Event]]:
    """Read the events like `read_events`, but skip some of the earlier batches of each query in a long run.

    A day of ten queries has a million batches, and a plot some thousand points. Sums stay correct, because each
    segment begins with the totals of the earlier ones.
    """
    files = _segments(place)
    every = len(files) // WHOLE
    if every <= 1:
        return _numbered(files)
    return chain(_numbered(files[:1]), _numbered(files[1:-WHOLE], every=every), _numbered(files[-WHOLE:]))


def read_last_events(folder: Path) -> Iterator[tuple[int, Event]]:
    """Read the first event of a run, which describes it, and the events of its last segments."""
    segments = _segments(folder)
    if len(segments) <= LAST:
        return _numbered(segments)
    return chain(islice(_numbered(segments[:1]), 1), _numbered(segments[-LAST:]))


def _segments(path: Path) -> list[Path]:
    """Return the files of a run in order."""
    if not path.is_dir():
        return [path]
    files: dict[str, Path] = {}
    for file in sorted(path.iterdir()):
        # A crash between compressing and deleting leaves both files.
        if file.name.endswith((".jsonl", ".jsonl.gz")):
            files.setdefault(file.name.removesuffix(".gz"), file)
    return list(files.values())


def _numbered(files: list[Path], every: int = 1) -> Iterator[tuple[int, Event]]:
    """Yield events with their numbers, and one batch of each `every` per query."""
    number = 0
    counts: dict[str, int] = {}
    for file in files:
        for line in read_lines(file):
            # Skipped before parsing, because most lines are batches. A line begins with event and query.
            if every > 1 and line.startswith(_BATCHES):
                key = line.partition('"at"')[0]
                counts[key] = counts.get(key, -1) + 1
                if counts[key] % every:
                    continue
            if line.strip():
                event = parse_event(line)
                # The output of `run --json` has no numbers.
                number = event.data.pop("n", number + 1)
                yield number, event


def parse_event(line: str) -> Event:
    """Parse a line of JSON as an event. Raises `ValueError`."""
    fields = json.loads(line)
    if not isinstance(fields, dict) or "event" not in fields or "at" not in fields:
        raise ValueError("a line of a run's log must have 'event' and 'at'")
    return Event(fields.pop("event"), fields.pop("query", ""), at=fields.pop("at"), data=fields)


@dataclass(frozen=True)
class PastRun:
    """A run with a log on disk. `ended` and `exit_code` are None if it was killed or is still running."""

    id: str
    folder: Path
    pipeline: str
    started: str
    ended: str | None
    exit_code: int | None


def list_runs(runs: Path) -> list[PastRun]:
    """Return the runs in a folder, latest first; skip folders that do not contain one."""
    past_runs = []
    for folder in sorted(runs.iterdir(), reverse=True) if runs.is_dir() else []:
        try:
            _, first = next(read_events(folder), (0, None)) if folder.is_dir() else (0, None)
            end = _end(folder) if first else None
        except (OSError, ValueError, EOFError):
            continue
        if first is not None:
            code = end.data.get("exit_code") if end else None
            name = first.data.get("pipeline", "")
            past_runs.append(PastRun(folder.name, folder, name, first.at, end.at if end else None, code))
    return past_runs


def _end(folder: Path) -> Event | None:
    """Return the event `run_stopped` if it is the last one."""
    segments = sorted(folder.glob("*.jsonl"))
    if not segments:
        return None
    with segments[-1].open("rb") as file:
        start = file.seek(max(0, segments[-1].stat().st_size - _TAIL))
        # Nothing follows the end of the last line, unless a crash truncated that line.
        *lines, _ = file.read().decode(errors="replace").split("\n")
    if start:
        # The beginning of this line may be missing.
        lines = lines[1:]
    try:
        last = parse_event(lines[-1]) if lines else None
    except ValueError:
        return None
    return last if last is not None and last.event == "run_stopped" else None


def delete_old_runs(runs: Path, keep: int = RUNS) -> None:
    """Delete all but the latest runs, first those in which no query has started; ignore those that cannot be deleted.

    A run whose log is open is neither deleted nor counted.
    """
    folders = [entry for entry in runs.iterdir() if entry.is_dir()] if runs.is_dir() else []
    ended = sorted(folder for folder in folders if not _is_locked(folder))
    if len(ended) > keep:
        # A sort is stable: the oldest run comes first among those with a query, and among those without.
        for old in sorted(ended, key=_has_started)[: len(ended) - keep]:
            shutil.rmtree(old, ignore_errors=True)


def _lock(run: Path) -> IO[str]:
    """Lock the folder of a run until the result is closed; where the file system has no locks, only open the file."""
    handle = os.fdopen(os.open(run / LOCK, os.O_RDWR | os.O_CREAT, 0o600), "r+")
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return handle


def _is_locked(run: Path) -> bool:
    """Return whether the log of a run is open."""
    try:
        with (run / LOCK).open("r+") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        # Runs of earlier versions have no such file.
        return False
    return False


def _has_started(run: Path) -> bool:
    """Return whether a query of a run has started. Reads the log only up to there."""
    try:
        segments = _segments(run)
        return len(segments) > 1 or any(
            line.startswith(_STARTED) for segment in segments for line in read_lines(segment)
        )
    except (OSError, ValueError, EOFError):
        # A log that cannot be read is deleted by its age.
        return True
