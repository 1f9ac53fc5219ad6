"""The events of a run on disk: JSON lines in segments, packed when they are full, thinned when they are too many."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import IO, TYPE_CHECKING

from millstream.runtime.events import Event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

# A segment this long packs to a tenth in a tenth of a second.
SEGMENT = 4_000_000
# A day of ten queries at a batch a second is some 100 MB packed; beyond this the oldest segments are thinned.
MOST = 150_000_000
# Of a thinned segment one batch in so many stays, of each query; every other event stays.
EVERY = 10
# So many runs of a project are kept.
RUNS = 30
# The end of a run is looked for in so many last bytes of its log.
_TAIL = 65_536
# What a later run shows of the one before it: some ten thousand batches at most.
LAST = 2
# Of a run that is looked at later so many last segments are read whole: at ten batches a second, half an hour.
WHOLE = 8
_BATCHES = ('{"event": "batch_committed"', '{"event": "batch_written"')


@dataclass
class RunLog:
    """Writes the events of one run into its folder. Used by one thread."""

    folder: Path
    segment: int = SEGMENT
    most: int = MOST
    heading: Callable[[], Iterable[str]] | None = None
    """Lines that each segment but the first begins with: what the segments before it add up to."""
    _number: int = 0
    _size: int = 0
    _file: IO[str] | None = None
    _thinned: set[str] = field(default_factory=set)

    def write(self, line: str) -> None:
        """Add one line, which is there for a reader when this returns. Raises `OSError`."""
        if self._file is None:
            self._open()
        assert self._file is not None
        self._file.write(line + "\n")
        self._file.flush()
        self._size += len(line) + 1
        if self._size >= self.segment:
            self._turn()

    def close(self) -> None:
        """Close the segment in progress; it stays as it is."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> None:
        # The log may hold what a record holds: for the owner's eyes.
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
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
        """Pack the full segment, and keep the bound."""
        self.close()
        path = self.folder / f"{self._number:06}.jsonl"
        _pack(path, path.read_text(encoding="utf-8"))
        path.unlink()
        self._bound()
        if self.heading is not None:
            # At once: a line later they would add up to one event too many.
            self._open()

    def _bound(self) -> None:
        """Thin the older half of the segments, the oldest first; when all of it is thin, the oldest goes."""
        packed = sorted(self.folder.glob("*.jsonl.gz"))
        size = {one: one.stat().st_size for one in packed}
        while sum(size.values()) > self.most and len(packed) > 2:
            # The first segment has what the run is.
            thick = [one for one in packed[1 : 1 + len(packed) // 2] if one.name not in self._thinned]
            if thick:
                self._thinned.add(thick[0].name)
                _pack(thick[0].with_suffix(""), "".join(f"{line}\n" for line in _thin(thick[0])))
                size[thick[0]] = thick[0].stat().st_size
            else:
                old = packed.pop(1)
                old.unlink()
                del size[old]


def _pack(path: Path, text: str) -> None:
    """Write a packed segment so that a reader sees all of it or none."""
    packed, made = path.with_name(path.name + ".gz"), path.with_name(path.name + ".making")
    with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as raw:
        raw.write(gzip.compress(text.encode(), compresslevel=6, mtime=0))
    made.replace(packed)


def _thin(segment: Path) -> Iterator[str]:
    """The lines of a segment with one batch in ten, of each query."""
    seen: dict[str, int] = {}
    for line in lines_of(segment):
        told = json.loads(line)
        if told["event"] in ("batch_committed", "batch_written"):
            key = told["event"] + told.get("query", "")
            seen[key] = seen.get(key, -1) + 1
            if seen[key] % EVERY:
                continue
        yield line


def lines_of(file: Path) -> Iterator[str]:
    """The lines of a segment; one that was torn by a crash at its end is left out."""
    with (gzip.open if file.suffix == ".gz" else open)(file, "rt", encoding="utf-8") as text:
        for line in text:
            if line.endswith("\n"):
                yield line.rstrip("\n")


def events(place: Path) -> Iterator[tuple[int, Event]]:
    """The events of a run, each with its number: of its folder, or of one file as `run --json` prints them.

    Raises `OSError`, and `ValueError` for a line that is no event.
    """
    return _numbered(_segments(place))


def brief(place: Path) -> Iterator[tuple[int, Event]]:
    """As `events`, but of a long run some of the batches before its end are left out, of each query alike.

    A day of ten queries has a million batches, and a plot some thousand points. Sums are right all the same: each
    segment tells those of the segments before it.
    """
    files = _segments(place)
    every = len(files) // WHOLE
    if every <= 1:
        return _numbered(files)
    return chain(_numbered(files[:1]), _numbered(files[1:-WHOLE], every=every), _numbered(files[-WHOLE:]))


def tail(folder: Path) -> Iterator[tuple[int, Event]]:
    """The first event of a run, which tells what it is, and those of its last segments."""
    segments = _segments(folder)
    if len(segments) <= LAST:
        return _numbered(segments)
    return chain(islice(_numbered(segments[:1]), 1), _numbered(segments[-LAST:]))


def _segments(place: Path) -> list[Path]:
    """The files of a run in their order."""
    if not place.is_dir():
        return [place]
    found: dict[str, Path] = {}
    for file in sorted(place.iterdir()):
        # A crash between packing and removing leaves both.
        if file.name.endswith((".jsonl", ".jsonl.gz")):
            found.setdefault(file.name.removesuffix(".gz"), file)
    return list(found.values())


def _numbered(files: list[Path], every: int = 1) -> Iterator[tuple[int, Event]]:
    """Events with their numbers; one batch in so many of each query."""
    number = 0
    seen: dict[str, int] = {}
    for file in files:
        for line in lines_of(file):
            # Before it is parsed: most of the work of a long run is its batches. A line begins with event and query.
            if every > 1 and line.startswith(_BATCHES):
                key = line.partition('"at"')[0]
                seen[key] = seen.get(key, -1) + 1
                if seen[key] % every:
                    continue
            if line.strip():
                event = parsed(line)
                # A file of `run --json` has no numbers.
                number = event.data.pop("n", number + 1)
                yield number, event


def parsed(line: str) -> Event:
    """The event that a line of JSON tells. Raises `ValueError`."""
    told = json.loads(line)
    if not isinstance(told, dict) or "event" not in told or "at" not in told:
        raise ValueError("a line of a run's log has 'event' and 'at'")
    return Event(told.pop("event"), told.pop("query", ""), at=told.pop("at"), data=told)


@dataclass(frozen=True)
class Past:
    """A run that is on disk. `ended` and `exit_code` are None where it was killed, or still runs."""

    id: str
    folder: Path
    pipeline: str
    started: str
    ended: str | None
    exit_code: int | None


def past(runs: Path) -> list[Past]:
    """The runs in a folder of runs, the latest first; folders that hold none are passed over."""
    found = []
    for folder in sorted(runs.iterdir(), reverse=True) if runs.is_dir() else []:
        try:
            _, first = next(events(folder), (0, None)) if folder.is_dir() else (0, None)
            end = _end(folder) if first else None
        except (OSError, ValueError, EOFError):
            continue
        if first is not None:
            code = end.data.get("exit_code") if end else None
            name = first.data.get("pipeline", "")
            found.append(Past(folder.name, folder, name, first.at, end.at if end else None, code))
    return found


def _end(folder: Path) -> Event | None:
    """The event `run_stopped`, where it is the last."""
    segments = sorted(folder.glob("*.jsonl"))
    if not segments:
        return None
    with segments[-1].open("rb") as file:
        file.seek(max(0, segments[-1].stat().st_size - _TAIL))
        lines = file.read().decode(errors="replace").splitlines()
    last = parsed(lines[-1]) if lines else None
    return last if last is not None and last.event == "run_stopped" else None


def forget(runs: Path, keep: int = RUNS) -> None:
    """Remove all but the latest runs; one that cannot be removed stays."""
    folders = sorted((one for one in runs.iterdir() if one.is_dir()), reverse=True) if runs.is_dir() else []
    for old in folders[keep:]:
        shutil.rmtree(old, ignore_errors=True)
