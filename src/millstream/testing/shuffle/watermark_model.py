"""Model the watermark of a split from its rows: its value per batch, the late rows, and what advanced it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from millstream.testing.shuffle.splits import Split


@dataclass(frozen=True)
class TimedRow:
    """The event time and key of a row. Times are microseconds since 1970; None is a row without a time."""

    source: str
    time: int | None
    key: Hashable = None
    """The key by which the source drops repeated rows within the watermark, or None."""


@dataclass(frozen=True)
class WatermarkPolicy:
    """The watermark delays of the sources that a query reads, and the policy that combines them.

    Delays are microseconds. Rows of a source without a delay are never late.
    """

    delays: Mapping[str, int]
    follows_slowest: bool = True
    """Whether the query's watermark follows the slowest source (Spark's policy `min`) or the fastest (`max`)."""


@dataclass(frozen=True)
class LateRow:
    """A row that arrived after the watermark had passed its event time. Times are microseconds since 1970."""

    item: int
    batch: int
    """The batch that read it, from 0."""
    time: int
    watermark: int
    moved_by: int | None
    """The earlier row whose event time set the watermark, or None if unknown."""


@dataclass(frozen=True)
class WatermarkTimeline:
    """The watermark over the batches of one split. Times are microseconds since 1970; 0 means no watermark yet."""

    before: tuple[int, ...]
    """The watermark that applies to the rows of each batch."""
    after: tuple[int, ...]
    late: tuple[LateRow, ...]
    repeated: tuple[tuple[int, int], ...] = ()
    """Rows that their source drops as duplicates, each with the original row."""
    missed_duplicates: tuple[tuple[int, int], ...] = ()
    """Duplicates that are not dropped, because the watermark has passed the time for which their key is
    remembered; each with the original row."""


def compute_timeline(
    split: Split, rows: Mapping[int, TimedRow], policy: WatermarkPolicy
) -> WatermarkTimeline:
    """Compute the watermark batch by batch, as Spark does (`WatermarkTracker`, `WatermarkSupport`, 4.2).

    A source's watermark is its newest event time in whole milliseconds minus the delay. The query's watermark is the
    lowest of its sources, 0 while a source has no rows, and never decreases. It applies to the next batch's rows,
    because a no-data batch runs after each advance. After a restart, Spark does not know the progress of each source:
    the watermark stays, and advances once every source has delivered rows again.
    """
    newest: dict[str, tuple[int, int]] = {}
    remembered_keys: dict[tuple[str, Hashable], tuple[int, int]] = {}
    now, moved_by = 0, None
    before, after, late, repeated, not_dropped = [], [], [], [], []
    for batch, part in enumerate(split):
        before.append(now)
        if part.is_first:
            newest.clear()
        keys_in_batch: dict[tuple[str, Hashable], tuple[int, int]] = {}
        for item in part.items:
            row = rows[item]
            if row.time is None or row.source not in policy.delays:
                continue
            if now and row.time <= now:
                late.append(LateRow(item, batch, row.time, now, moved_by))
                continue
            if row.key is None:
                continue
            source_and_key = (row.source, row.key)
            earlier = keys_in_batch.get(source_and_key) or remembered_keys.get(source_and_key)
            if earlier and (source_and_key in keys_in_batch or earlier[0] > now):
                repeated.append((item, earlier[1]))
                continue
            if earlier:
                not_dropped.append((item, earlier[1]))
            # A key is remembered until the watermark passes the time of its first row plus the delay.
            keys_in_batch[source_and_key] = (row.time + policy.delays[row.source], item)
        remembered_keys |= keys_in_batch
        for item in part.items:
            row = rows[item]
            if row.time is None or row.source not in policy.delays:
                continue
            moment = row.time // 1000 * 1000 - policy.delays[row.source]
            if row.source not in newest or moment > newest[row.source][0]:
                newest[row.source] = (moment, item)
        combined, mover = _combine(newest, policy)
        if combined > now:
            now, moved_by = combined, mover
        after.append(now)
    return WatermarkTimeline(tuple(before), tuple(after), tuple(late), tuple(repeated), tuple(not_dropped))


def _combine(newest: Mapping[str, tuple[int, int]], policy: WatermarkPolicy) -> tuple[int, int | None]:
    """Combine the watermarks of several sources, and return the row that set the result."""
    if not newest or (policy.follows_slowest and len(newest) < len(policy.delays)):
        return 0, None
    return (min if policy.follows_slowest else max)(newest.values())


def candidate_late_sets(late: Sequence[LateRow], closed: Sequence[int], most: int) -> list[frozenset[int]]:
    """Return sets of rows that may have been dropped, the likeliest first, at most `most` sets.

    `closed` are late rows whose window had ended too. An operator drops a row by the row's time, by its window's end,
    or not at all, so that any of the late rows may be missing from the result.
    """
    all_late = [row.item for row in late]
    candidates = [frozenset(closed), frozenset(all_late)]
    candidates += [frozenset({row}) for row in all_late]
    candidates += [frozenset(all_late) - {row} for row in all_late]
    candidates += [
        frozenset({row, second}) for at, row in enumerate(all_late) for second in all_late[at + 1 :]
    ]
    return [row for row in dict.fromkeys(candidates) if row][:most]
