"""Compute the lag of each query in its topics and their partitions."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import mean
from typing import TYPE_CHECKING, Any

from millstream.dashboard.state import api_schema, timestamps

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

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
class TopicLag:
    """What a query has read of a topic, where the topic ends, and the history of both: sums over its partitions.

    Of each partition only the last offsets are kept: a topic with a thousand costs little more than one with ten.
    """

    committed: dict[str, int] = field(default_factory=dict)
    """Up to where each partition has been read by a committed batch; empty until one is committed."""
    latest: dict[str, int] = field(default_factory=dict)
    """Where each partition ends."""
    latest_at: float = 0.0
    """The time at which the partitions ended there."""
    behind: int | None = None
    """The number of records in the topic that no committed batch has read, or None if that is not known."""
    history: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=KEPT))
    """How many records each of the last batches left."""
    ends: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=KEPT_ENDS))
    """Where the topic ended, each time its broker was asked."""
    commits: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=KEPT_COMMITS))
    """Up to where each of the last batches had read when it was committed."""
    _asked: int = 0
    """The number of partitions at the last look at the broker."""

    def record_committed(self, offsets: Mapping[str, int]) -> None:
        """Record up to where partitions have been read before a start."""
        self.committed |= offsets
        # What has been read was there.
        self.latest |= {name: max(offset, self.latest.get(name, 0)) for name, offset in offsets.items()}
        self._count()

    def record_batch(
        self, at: float, began: float, offsets: Mapping[str, int], newest: Mapping[str, int]
    ) -> None:
        """Record up to where a batch has read that began at a time, and where the topic ended then."""
        if offsets.keys() != self.committed.keys():
            # Other partitions: the sum of their offsets says nothing of a rate.
            self.commits.clear()
        if began >= self.latest_at:
            self.latest |= {name: newest.get(name, offset) for name, offset in offsets.items()}
            self.latest_at = began
        self.record_committed(offsets)
        self.commits.append((at, sum(offsets.values())))
        self.history.append((at, self.behind or 0))

    def record_ends(self, at: float, ends: Mapping[str, int]) -> None:
        """Record where the partitions end, as their broker said at a time."""
        if len(ends) != self._asked:
            # Records of a partition that is new have not arrived since the last look.
            self.ends.clear()
        self._asked = len(ends)
        self.latest, self.latest_at = {**self.latest, **ends}, at
        self.ends.append((at, sum(ends.values())))
        self._count()

    def _count(self) -> None:
        if self.committed:
            latest = self.latest
            self.behind = sum(
                max(0, latest.get(name, offset) - offset) for name, offset in self.committed.items()
            )

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
    left: Sequence[tuple[float, int]], topics: Iterable[TopicLag], now: float
) -> float | None:
    """Return the seconds until no records wait, if they arrive and are read as fast as they are, else None.

    `left` has the time of each of the last commits and how many records it left. There is no estimate unless their
    number shrinks, enough more is read than arrives, and both rates of each topic are known.
    """
    arrival_rate = read_rate = 0.0
    for topic in topics:
        arriving, reading = topic.arrival_rate(now), topic.read_rate()
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


Key = tuple[str, str]
"""Source, topic."""
PartitionOffsets = Mapping[str, Mapping[int, int]]
"""The offset after the newest record of each partition, by topic."""


def record_offsets(
    known: dict[Key, TopicLag],
    at: float,
    began: float,
    sources: list[dict[str, Any]],
    names: Sequence[str | None],
) -> None:
    """Record the offsets of one batch that began at a time: Spark asked for the newest offsets then.

    `names` are the spec's names of the sources, in the same order. A topic that a source no longer has is removed.
    """
    read: dict[str, set[str]] = {}
    for index, source in enumerate(sources):
        spec_name = names[index] if len(names) == len(sources) else None
        name = spec_name or str(source.get("description", ""))
        newest = parse_offsets(source.get("latestOffset"))
        for topic, offsets in parse_offsets(source.get("endOffset")).items():
            lag = known.setdefault((name, topic), TopicLag())
            lag.record_batch(at, began, offsets, newest.get(topic, {}))
            read.setdefault(name, set()).add(topic)
    for name, topics in read.items():
        # Spark lists all topics of a source. One that the broker has had since the batch began is new.
        _remove_topics(known, name, topics, until=began)


def _remove_topics(known: dict[Key, TopicLag], source: str, topics: Container[str], *, until: float) -> None:
    """Remove all but these topics of a source, unless they were seen after a time."""
    for key, lag in list(known.items()):
        if key[0] == source and key[1] not in topics and lag.latest_at <= until:
            del known[key]


def record_committed(known: dict[Key, TopicLag], names: Sequence[str | None], offsets: list[Any]) -> None:
    """Record what was committed before a start, by Spark's offsets of each source with a name in the spec."""
    for name, source in zip(names, offsets, strict=False):
        if name is not None:
            for topic, partitions in parse_offsets(source).items():
                known.setdefault((name, topic), TopicLag()).record_committed(partitions)


def record_ends(known: dict[Key, TopicLag], at: float, source: str, ends: PartitionOffsets) -> None:
    """Record where the partitions of a source end, as its broker said at a time."""
    for topic, partitions in ends.items():
        lag = known.setdefault((source, topic), TopicLag())
        lag.record_ends(at, {str(number): end for number, end in partitions.items()})
    # A topic that was read before the start and deleted since has never been seen.
    _remove_topics(known, source, ends, until=0.0)


def total_behind(topics: Iterable[TopicLag]) -> int | None:
    """Return the number of unread records in all topics, or None if it is known for none of them."""
    known = [topic.behind for topic in topics if topic.behind is not None]
    return sum(known) if known else None


def distinct_behind(readers: Iterable[Mapping[Key, TopicLag]]) -> int | None:
    """Return the number of records that at least one reader has not read: one that two have not read counts once."""
    by_topic: dict[Key, list[TopicLag]] = {}
    for topics in readers:
        for key, lag in topics.items():
            if lag.behind is not None:
                by_topic.setdefault(key, []).append(lag)
    return sum(map(_distinct_behind, by_topic.values())) if by_topic else None


def _distinct_behind(lags: list[TopicLag]) -> int:
    """Return the number of records of one topic that at least one of its readers has not read."""
    if len(lags) == 1:
        return lags[0].behind or 0
    worst: dict[str, int] = {}
    for lag in lags:
        for name, offset in lag.committed.items():
            worst[name] = max(worst.get(name, 0), lag.latest[name] - offset)
    return sum(worst.values())


def lag_json(
    query: str, known: dict[Key, TopicLag], now: float, *, is_query_late: bool, is_read_lately: bool
) -> list[api_schema.Lag]:
    """Convert the topics of a query to the page's JSON. Without a recent batch no rate of reading is current."""
    rows: list[api_schema.Lag] = []
    for (source, topic), lag in sorted(known.items()):
        since = lag.growing_since(is_query_late=is_query_late)
        rows.append(
            {
                "query": query,
                "source": source,
                "topic": topic,
                "partitions": len(lag.latest),
                "latest_at": timestamps.format_timestamp(lag.latest_at),
                "behind": lag.behind,
                "growing_since": None if since is None else timestamps.format_timestamp(since),
                "history": [behind for _, behind in lag.history],
                "arrival_rate": total_rate([lag.arrival_rate(now)]),
                "read_rate": total_rate([lag.read_rate()]) if is_read_lately else None,
            }
        )
    return rows


def partition_json(known: dict[Key, TopicLag]) -> list[api_schema.PartitionLag]:
    """Convert the partitions of a query to JSON, those with most unread records first."""
    rows: list[api_schema.PartitionLag] = [
        {
            "source": source,
            "topic": topic,
            "partition": int(name),
            "offset": (offset := lag.committed.get(name)),
            "latest": latest,
            "behind": None if offset is None else max(0, latest - offset),
        }
        for (source, topic), lag in known.items()
        for name, latest in lag.latest.items()
    ]
    return sorted(
        rows, key=lambda row: (-(row["behind"] or 0), row["topic"], row["partition"], row["source"])
    )


def parse_offsets(value: Any) -> dict[str, dict[str, int]]:
    """Return the offset of each partition by topic; empty for sources with other offsets (files, rate)."""
    if not isinstance(value, dict):
        return {}
    topics = {
        str(topic): {
            str(partition): offset for partition, offset in partitions.items() if isinstance(offset, int)
        }
        for topic, partitions in value.items()
        if isinstance(partitions, dict)
    }
    return {topic: offsets for topic, offsets in topics.items() if offsets}
