"""Compute the lag of each query in each partition of its topics."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import mean
from typing import TYPE_CHECKING, Any

from millstream.dashboard.state import api_schema, timestamps

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Number of values in a sparkline: about three minutes at a batch every five seconds.
KEPT = 40
# Lag rises and falls with every batch. It counts as growing if the mean of each quarter of the time is above the one
# before, and the last mean is a fifth above the first. Noise around a constant level does not meet this.
QUARTERS = 4
RISE = 1.2
# A batch that leaves this many times the records that any batch before it left, and at least so many, is not noise:
# nobody has to wait three more batches for the news.
JUMP = 2
LEAST_JUMP = 1000
# A figure of Kafka is current for these seconds: the broker is asked every three, and may take five to respond.
CURRENT = 8.0
# Seconds over which the rate of arriving records is measured, and looks at the broker in that time and a little more.
ARRIVAL = 60.0
KEPT_ENDS = 60
# The rate at which records are read is that of so many last batches, from commit to commit. Two intervals are the
# least of which anything can be said.
KEPT_COMMITS = 5
LEAST_COMMITS = 3
# Where less than this share of what is read makes the lag smaller, the difference of two measured rates is noise.
LEAST_SURPLUS = 0.05
# Nobody waits for the end of an estimate of more than a day, in seconds.
LONGEST_ESTIMATE = 86_400.0


@dataclass
class Partition:
    """One partition that a query reads: what it has committed, where the partition ends, and the history of its lag.

    `offset` is None until a batch is committed, `latest_at` the time at which the partition ended at `latest`.
    """

    offset: int | None = None
    latest: int = 0
    latest_at: float = 0.0
    history: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=KEPT))
    ends: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=KEPT_ENDS))
    """Where the partition ended, each time its broker was asked."""
    commits: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=KEPT_COMMITS))
    """Up to where each of the last batches had read when it was committed."""

    @property
    def behind(self) -> int | None:
        """The number of records in the topic that no committed batch has read, or None if that is not known."""
        return None if self.offset is None else max(0, self.latest - self.offset)

    def commit(self, offset: int) -> None:
        """Record up to where a batch has read."""
        self.offset = offset
        # A batch has read nothing that was not there.
        self.latest = max(self.latest, offset)

    def arrival_rate(self, now: float | None = None) -> float | None:
        """Return the records per second that arrived in the last minute, or None before two looks at the broker.

        Given the time, None also if the last look is no longer current.
        """
        if not self.ends or (now is not None and now - self.ends[-1][0] > CURRENT):
            return None
        return _slope([end for end in self.ends if end[0] >= self.ends[-1][0] - ARRIVAL])

    def read_rate(self) -> float | None:
        """Return the records per second that the last batches have read, or None before the third of them."""
        return _slope(self.commits) if len(self.commits) >= LEAST_COMMITS else None

    def growing_since(self, *, is_query_late: bool = False) -> float | None:
        """Return the time of the lowest lag if the lag has grown since, by the rule of alerts, else None.

        The history has a value for each committed batch. While a batch takes too long there is none, so for a late
        query the records that wait now are compared too.
        """
        if is_query_late and self.history and is_jump(self.behind or 0, self.history):
            return self.history[-1][0]
        if len(self.history) < QUARTERS:
            return None
        last = self.history[-1][0]
        # The latest time of the lowest value.
        _, back = min((behind, -at) for at, behind in self.history)
        if is_growing(self.history, last, last + back):
            return -back
        *earlier, (_, left) = self.history
        return earlier[-1][0] if is_jump(left, earlier) else None


def _slope(points: Sequence[tuple[float, int]]) -> float | None:
    """Return by how much an offset grows in a second, between the first and the last of some times."""
    (began, first), (ended, last) = points[0], points[-1]
    return max(0, last - first) / (ended - began) if ended > began else None


def total_rate(rates: Iterable[float | None]) -> float | None:
    """Return the sum of the rates that are known, or None if none is."""
    known = [rate for rate in rates if rate is not None]
    return round(sum(known), 1) if known else None


def estimate_catch_up(
    left: Sequence[tuple[float, int]], partitions: Iterable[Partition], now: float
) -> float | None:
    """Return the seconds until no records wait, if they arrive and are read as fast as they are, else None.

    `left` has the time of each of the last commits and how many records it left. There is no estimate unless their
    number shrinks, enough more is read than arrives, and both rates of each partition are known.
    """
    arrival_rate = read_rate = 0.0
    for partition in partitions:
        arriving, reading = partition.arrival_rate(now), partition.read_rate()
        if arriving is None or reading is None:
            return None
        arrival_rate, read_rate = arrival_rate + arriving, read_rate + reading
    if len(left) < LEAST_COMMITS:
        return None
    (_, first), (_, before), (last_at, last) = left[0], left[-2], left[-1]
    surplus = read_rate - arrival_rate
    if last >= first or last > before or surplus <= LEAST_SURPLUS * read_rate:
        return None
    seconds = last / surplus - (now - last_at)
    return round(seconds, 1) if 0 < seconds <= LONGEST_ESTIMATE else None


def is_jump(behind: int, earlier: Iterable[tuple[float, int]]) -> bool:
    """Return whether a lag is far above every value of an earlier time."""
    return behind >= LEAST_JUMP and behind > JUMP * max(left for _, left in earlier)


def is_growing(history: Iterable[tuple[float, int]], now: float, length: float) -> bool:
    """Return whether a figure has grown over the last `length` seconds. False if the history is shorter."""
    points = list(history)
    if not points or length <= 0 or points[0][0] > now - length:
        return False
    quarters: list[list[int]] = [[] for _ in range(QUARTERS)]
    for at, value in points:
        if at >= now - length:
            part = int((at - (now - length)) / length * QUARTERS)
            quarters[min(part, QUARTERS - 1)].append(value)
    if not all(quarters):
        return False
    means = [mean(part) for part in quarters]
    rising = all(after > before for before, after in pairwise(means))
    return rising and means[-1] > means[0] * RISE


Key = tuple[str, str, str]
"""Source, topic, partition."""
PartitionOffsets = Mapping[str, Mapping[int, int]]
"""The offset after the newest record of each partition, by topic."""


def record_offsets(
    known: dict[Key, Partition],
    at: float,
    began: float,
    sources: list[dict[str, Any]],
    names: Sequence[str | None],
) -> None:
    """Record the offsets of one batch that began at a time: Spark asked for the newest offsets then.

    `names` are the spec's names of the sources, in the same order.
    """
    for index, source in enumerate(sources):
        spec_name = names[index] if len(names) == len(sources) else None
        name = spec_name or str(source.get("description", ""))
        ends, newest = parse_offsets(source.get("endOffset")), parse_offsets(source.get("latestOffset"))
        for (topic, partition), offset in ends.items():
            state = known.setdefault((name, topic, partition), Partition())
            if began >= state.latest_at:
                state.latest = newest.get((topic, partition), offset)
                state.latest_at = began
            state.commit(offset)
            state.commits.append((at, offset))
            state.history.append((at, state.behind or 0))


def record_committed(known: dict[Key, Partition], names: Sequence[str | None], offsets: list[Any]) -> None:
    """Record what was committed before a start, by Spark's offsets of each source."""
    for name, source in zip(names, offsets, strict=False):
        for (topic, partition), offset in parse_offsets(source).items():
            known.setdefault((name or "", topic, partition), Partition()).commit(offset)


def record_ends(known: dict[Key, Partition], at: float, source: str, ends: PartitionOffsets) -> None:
    """Record where the partitions of a source end, as its broker said at a time."""
    for topic, partitions in ends.items():
        for number, end in partitions.items():
            state = known.setdefault((source, topic, str(number)), Partition())
            state.latest, state.latest_at = end, at
            state.ends.append((at, end))


def total_behind(partitions: Iterable[Partition]) -> int | None:
    """Return the number of unread records in all partitions, or None if it is known for none of them."""
    known = [partition.behind for partition in partitions if partition.behind is not None]
    return sum(known) if known else None


def distinct_behind(readers: Iterable[Mapping[Key, Partition]]) -> int | None:
    """Return the number of records that at least one reader has not read: one that two have not read counts once."""
    worst: dict[Key, int] = {}
    for partitions in readers:
        for key, partition in partitions.items():
            if partition.behind is not None:
                worst[key] = max(worst.get(key, 0), partition.behind)
    return sum(worst.values()) if worst else None


def lag_json(
    query: str, known: dict[Key, Partition], now: float, *, is_query_late: bool, is_read_lately: bool
) -> list[api_schema.Lag]:
    """Convert the partitions of a query to the page's JSON. Without a recent batch no rate of reading is current."""
    rows: list[api_schema.Lag] = []
    for (source, topic, partition), state in sorted(known.items(), key=lambda item: _order(item[0])):
        since = state.growing_since(is_query_late=is_query_late)
        rows.append(
            {
                "query": query,
                "source": source,
                "topic": topic,
                "partition": partition,
                "offset": state.offset,
                "latest": state.latest,
                "latest_at": timestamps.format_timestamp(state.latest_at),
                "behind": state.behind,
                "growing_since": None if since is None else timestamps.format_timestamp(since),
                "history": [behind for _, behind in state.history],
                "arrival_rate": total_rate([state.arrival_rate(now)]),
                "read_rate": total_rate([state.read_rate()]) if is_read_lately else None,
            }
        )
    return rows


def _order(key: Key) -> tuple[str, str, int]:
    source, topic, partition = key
    return source, topic, int(partition) if partition.isdigit() else 0


def parse_offsets(value: Any) -> dict[tuple[str, str], int]:
    """Return offsets by topic and partition; empty for sources with other offsets (files, rate)."""
    if not isinstance(value, dict):
        return {}
    return {
        (str(topic), str(partition)): offset
        for topic, partitions in value.items()
        if isinstance(partitions, dict)
        for partition, offset in partitions.items()
        if isinstance(offset, int)
    }
