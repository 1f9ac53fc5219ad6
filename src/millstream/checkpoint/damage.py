"""Find what is torn, empty or gone in a checkpoint folder, before Spark trips over it or goes on wrongly."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.record import read as read_record
from millstream.checkpoint.sourcelog import of_sources
from millstream.checkpoint.stores import of_state
from millstream.checkpoint.wrong import COPY, Damage
from millstream.diagnostics.failure import CannotGoOn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Damage", "damage"]

# Spark reads the newest file of each log and, of the offsets, the one before; older ones are history.
_READ = 2


@dataclass(frozen=True)
class _Logs:
    """The numbers in `offsets/` and `commits/`, and which of those that Spark reads are torn."""

    folder: Path
    planned: tuple[int, ...]
    committed: tuple[int, ...]

    @classmethod
    def of(cls, folder: Path) -> _Logs:
        return cls(folder, _numbers(folder / "offsets"), _numbers(folder / "commits"))

    def torn(self, log: str, number: int) -> str | None:
        """What is wrong with one file of a log, or None."""
        return _torn(self.folder / log / str(number), lines=2)


def damage(folder: Path) -> list[Damage]:
    """What is wrong with a checkpoint, the gravest first; empty for a sound one and for one that is not there.

    Reads files only, and only those that Spark reads at a start. What lies in a state store's files is not
    looked into, but that each is there and not empty.
    """
    if not folder.is_dir():
        return []
    logs = _Logs.of(folder)
    found = [*_metadata(logs), *_commits(logs), *_offsets(logs), *_unplanned_state(logs), *_record(folder)]
    if not found and logs.planned:
        planned = Checkpoint(folder).offsets(logs.planned[-1])
        assert planned is not None, "its file was read a moment ago"
        done = bool(logs.committed) and logs.committed[-1] == logs.planned[-1]
        found += of_sources(folder, planned, done=done)
        found += of_state(folder, logs.planned[-1] + int(done))
    return found


def _metadata(logs: _Logs) -> Iterator[Damage]:
    """The query's id: gone, or unreadable."""
    file = logs.folder / "metadata"
    begun = bool(logs.planned or logs.committed)
    try:
        gone = Checkpoint(logs.folder).query_id() is None
    except CannotGoOn:
        gone = False
    else:
        if not (gone and begun):
            return
    state = "is gone" if gone else "is torn: it does not hold a query's id"
    known = _known_id(logs.folder)
    if not begun and known is None:
        yield Damage(
            f"{file} {state}",
            file,
            "no batch was ever planned here, so no sink has rows under the id it held",
            "make a fresh id",
            aside=(file,),
        )
    elif known is not None:
        yield Damage(
            f"{file} {state}",
            file,
            "the sinks know the query by that id; with another one they would take rows that they have again",
            f"write it again with the id of _millstream/record.json, {known}",
            aside=() if gone else (file,),
            written=json.dumps({"id": known}, separators=(",", ":")),
        )
    else:
        yield Damage(
            f"{file} {state}",
            file,
            "the sinks know the query by that id, and nothing else here says it",
            COPY,
        )


def _known_id(folder: Path) -> str | None:
    """The id that the record of the last start has."""
    try:
        known = read_record(folder)
    except CannotGoOn:
        return None
    return known.query_id if known else None


def _commits(logs: _Logs) -> Iterator[Damage]:
    """The newest commit: torn, or of a batch whose offsets are gone."""
    if not logs.committed:
        return
    newest = logs.committed[-1]
    file = logs.folder / "commits" / str(newest)
    last = logs.planned[-1] if logs.planned else None
    if last is None or last < newest:
        lost = logs.folder / "offsets" / str(newest)
        yield Damage(
            f"{lost} is gone, and batch {newest} was committed",
            lost,
            "Spark would plan that batch anew with other rows, and sinks that hold the batch would pass them over",
            COPY,
        )
        return
    state = logs.torn("commits", newest)
    if state is None:
        return
    # State under commits of version 2 is found by names that stand in the commit before.
    needed = newest < last and any(
        (logs.folder / "commits" / str(number)).read_text().startswith("v2")
        for number in logs.committed[-_READ:-1]
    )
    if needed:
        yield Damage(f"{file} {state}", file, "it names the state that the batch after it goes on from", COPY)
        return
    again = (
        f"batch {newest} runs again over the same rows, and sinks that hold it pass it over"
        if newest == last
        else f"batch {newest} had ended before batch {last} was planned, so no row is read again for it"
    )
    yield Damage(f"{file} {state}", file, again, "set the file aside", aside=(file,))


def _offsets(logs: _Logs) -> Iterator[Damage]:
    """The newest offsets and those before: torn, or gone."""
    if not logs.planned:
        return
    newest = logs.planned[-1]
    file = logs.folder / "offsets" / str(newest)
    done = bool(logs.committed) and logs.committed[-1] >= newest
    state = logs.torn("offsets", newest)
    if state is not None and done:
        yield Damage(
            f"{file} {state}, and batch {newest} was committed",
            file,
            "nothing else says where the next batch begins: rows would be lost or come twice",
            COPY,
        )
    elif state is not None:
        yield Damage(
            f"{file} {state}",
            file,
            f"batch {newest} is planned again, perhaps with more rows; a sink that holds it ends the start",
            "set the file aside",
            aside=(file,),
        )
    if newest == 0:
        return
    before = logs.folder / "offsets" / str(newest - 1)
    state = logs.torn("offsets", newest - 1) if newest - 1 in logs.planned else "is gone"
    if state is not None:
        yield Damage(
            f"{before} {state}",
            before,
            f"batch {newest} begins where that one ended, and Spark does not start without it",
            COPY,
        )


def _unplanned_state(logs: _Logs) -> Iterator[Damage]:
    """State of a batch whose offsets are gone, where no batch was ever committed."""
    state = logs.folder / "state"
    if logs.planned or logs.committed or not state.is_dir() or not any(state.iterdir()):
        return
    yield Damage(
        f"{state} holds state, and no batch was planned",
        state,
        "a first batch wrote it and never ended, and Spark does not start beside it; batch 0 is planned again",
        "set the folder aside",
        aside=(state,),
    )


def _record(folder: Path) -> Iterator[Damage]:
    """Our own account of what made the checkpoint."""
    try:
        read_record(folder)
    except CannotGoOn:
        file = folder / "_millstream" / "record.json"
        yield Damage(
            f"{file} is torn",
            file,
            "no sink is concerned; changes of the pipeline since the last start cannot be told",
            "set the file aside; the next start writes it again",
            aside=(file,),
        )


def _numbers(folder: Path) -> tuple[int, ...]:
    if not folder.is_dir():
        return ()
    return tuple(sorted(int(file.name) for file in folder.iterdir() if file.name.isdigit()))


def _torn(file: Path, *, lines: int) -> str | None:
    """What is wrong with a file of a version line and at least one of JSON."""
    raw = file.read_bytes()
    if not raw.strip(b"\0 \n"):
        return "is empty"
    text = raw.decode(errors="replace").splitlines()
    if len(text) < lines or text[0] not in ("v1", "v2", "v3"):
        return "is torn"
    try:
        # Continuous processing writes no metadata beside its offsets: that line is there, and empty.
        json.loads(text[1] if text[1] or len(text) == lines else "{}")
        for line in text[2:]:
            # v2 writes `name:{…}`; a source without rows is a dash.
            told = line.partition(":")[2] if text[0] != "v1" else line
            if told != "-":
                json.loads(told)
    except ValueError:
        return "is torn"
    return None
