"""How far each query is behind each partition of the topics it reads."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import mean
from typing import TYPE_CHECKING, Any

from millstream.dashboard import moments, shapes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Values behind a sparkline; at a batch every five seconds, some three minutes.
KEPT = 40
# Lag goes up and down with every batch. It grows where each quarter of the time is above the one before in its
# mean, and the last by a fifth above the first: noise around a level does not do that.
QUARTERS = 4
RISE = 1.2


@dataclass
class Partition:
    """One partition as a query reads it: the offsets of its last batch, and how far it was behind."""

    offset: int = 0
    latest: int = 0
    history: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=KEPT))

    @property
    def behind(self) -> int:
        """Records that are in the topic and were not read."""
        return max(0, self.latest - self.offset)

    def growing_since(self) -> float | None:
        """When it was lowest, where it has grown from then on as an alert means it; None where it does not grow."""
        if len(self.history) < QUARTERS:
            return None
        last = self.history[-1][0]
        # Of several times of the same least value the last.
        _, back = min((behind, -at) for at, behind in self.history)
        return -back if growing(self.history, last, last + back) else None


def growing(history: Iterable[tuple[float, int]], now: float, length: float) -> bool:
    """Has a figure grown over the last `length` seconds? Not where less than that is known."""
    known = list(history)
    if not known or length <= 0 or known[0][0] > now - length:
        return False
    quarters: list[list[int]] = [[] for _ in range(QUARTERS)]
    for at, value in known:
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


def take(
    known: dict[Key, Partition], at: float, sources: list[dict[str, Any]], names: Sequence[str | None]
) -> None:
    """Take in the offsets of one batch. `names` are the spec's names of the sources, in the same order."""
    for index, source in enumerate(sources):
        known_as = names[index] if len(names) == len(sources) else None
        name = known_as or str(source.get("description", ""))
        ends, newest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
        for (topic, partition), offset in ends.items():
            one = known.setdefault((name, topic, partition), Partition())
            one.offset = offset
            one.latest = max(newest.get((topic, partition), offset), offset)
            one.history.append((at, one.behind))


def told(query: str, known: dict[Key, Partition]) -> list[shapes.Lag]:
    """The partitions of a query as the page reads them."""
    found: list[shapes.Lag] = []
    for (source, topic, partition), one in sorted(known.items(), key=lambda item: _order(item[0])):
        since = one.growing_since()
        found.append(
            {
                "query": query,
                "source": source,
                "topic": topic,
                "partition": partition,
                "offset": one.offset,
                "latest": one.latest,
                "behind": one.behind,
                "growing_since": None if since is None else moments.text(since),
                "history": [behind for _, behind in one.history],
            }
        )
    return found


def _order(key: Key) -> tuple[str, str, int]:
    source, topic, partition = key
    return source, topic, int(partition) if partition.isdigit() else 0


def _offsets(told: Any) -> dict[tuple[str, str], int]:
    """Offsets by topic and partition; nothing for a source that counts otherwise (files, rate)."""
    if not isinstance(told, dict):
        return {}
    return {
        (str(topic), str(partition)): offset
        for topic, partitions in told.items()
        if isinstance(partitions, dict)
        for partition, offset in partitions.items()
        if isinstance(offset, int)
    }
