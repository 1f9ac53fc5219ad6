"""The watermark at each batch of a split, told from its rows: which come too late, and which row moved it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from millstream.testing.splits import Split


@dataclass(frozen=True)
class Timed:
    """What the watermark needs of a row. Times are microseconds since 1970; None is a row without one."""

    source: str
    time: int | None
    key: Hashable = None
    """The values by which its source drops a repeated row within the watermark; None where it does not."""


@dataclass(frozen=True)
class Clocks:
    """The watermarks of the sources that a query reads: their delays, and how they become one.

    Delays are microseconds. Without a source here rows never come too late.
    """

    delays: Mapping[str, int]
    slowest: bool = True
    """The query's watermark is that of the slowest source; that of the fastest where it is set so."""


@dataclass(frozen=True)
class Late:
    """A row that came when the watermark had passed its event time; times are microseconds since 1970."""

    item: int
    batch: int
    """The batch that read it, from 0."""
    time: int
    watermark: int
    moved_by: int | None
    """The earlier row whose event time put the watermark there; None where that cannot be told."""


@dataclass(frozen=True)
class Course:
    """What the watermark does in one split. Times are microseconds since 1970; 0 is no watermark yet."""

    before: tuple[int, ...]
    """The watermark that each batch's rows meet."""
    after: tuple[int, ...]
    late: tuple[Late, ...]
    repeated: tuple[tuple[int, int], ...] = ()
    """Rows that their source drops as repeated, each with the row that it repeats."""
    again: tuple[tuple[int, int], ...] = ()
    """Rows that come through although one with the same key came before, each with that one: the watermark had
    passed what the key was remembered for."""


def course(split: Split, rows: Mapping[int, Timed], clocks: Clocks) -> Course:
    """Follow a split batch by batch, as Spark does (`WatermarkTracker`, `WatermarkSupport`, 4.2).

    Spark takes the newest event time of each source in whole milliseconds, less the delay; of several sources
    the least; a source without rows holds it at 0. It never goes back. The rows of a batch meet the watermark that
    all batches before left, as a batch without data runs wherever it moved. Of how far each source was, a run that
    starts again knows nothing: the watermark stays, and goes on once each source has rows again.
    """
    newest: dict[str, tuple[int, int]] = {}
    memory: dict[tuple[str, Hashable], tuple[int, int]] = {}
    now, moved_by = 0, None
    before, after, late, repeated, again = [], [], [], [], []
    for batch, part in enumerate(split):
        before.append(now)
        if part.begins:
            newest.clear()
        seen: dict[tuple[str, Hashable], tuple[int, int]] = {}
        for item in part.items:
            row = rows[item]
            if row.time is None or row.source not in clocks.delays:
                continue
            if now and row.time <= now:
                late.append(Late(item, batch, row.time, now, moved_by))
                continue
            if row.key is None:
                continue
            name = (row.source, row.key)
            known = seen.get(name) or memory.get(name)
            if known and (name in seen or known[0] > now):
                repeated.append((item, known[1]))
                continue
            if known:
                again.append((item, known[1]))
            # A key is remembered until the watermark passes its first row's time and the delay.
            seen[name] = (row.time + clocks.delays[row.source], item)
        memory |= seen
        for item in part.items:
            row = rows[item]
            if row.time is None or row.source not in clocks.delays:
                continue
            moment = row.time // 1000 * 1000 - clocks.delays[row.source]
            if row.source not in newest or moment > newest[row.source][0]:
                newest[row.source] = (moment, item)
        reached, mover = _together(newest, clocks)
        if reached > now:
            now, moved_by = reached, mover
        after.append(now)
    return Course(tuple(before), tuple(after), tuple(late), tuple(repeated), tuple(again))


def _together(newest: Mapping[str, tuple[int, int]], clocks: Clocks) -> tuple[int, int | None]:
    """The watermark of several sources as one, and the row it comes from."""
    if not newest or (clocks.slowest and len(newest) < len(clocks.delays)):
        return 0, None
    return (min if clocks.slowest else max)(newest.values())


def trials(late: Sequence[Late], closed: Sequence[int], most: int) -> list[frozenset[int]]:
    """Sets of rows that may have been dropped, the likeliest first: at most `most` of them.

    `closed` are late rows whose window had ended too. An operator drops a row by its own time, by its window's
    end, or not at all, so that any of the late rows may be missing from the answer.
    """
    every = [one.item for one in late]
    ordered = [frozenset(closed), frozenset(every)]
    ordered += [frozenset({one}) for one in every]
    ordered += [frozenset(every) - {one} for one in every]
    ordered += [frozenset({one, two}) for at, one in enumerate(every) for two in every[at + 1 :]]
    return [one for one in dict.fromkeys(ordered) if one][:most]
