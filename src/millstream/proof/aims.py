"""Where each kill strikes: every named point in turn, and moments that nobody chose."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.pipeline.model import Pipeline

RANDOM = "a random moment"
STARTING = "a random moment of the start"
# Points that every pipeline passes; those of its sinks come on top.
COMMON = ("batch.begun", "batch.delivered")
# Seconds in which a driver whose session is ready opens its writers and has its queries running, and in which they
# deliver a batch or two: short, since what a kill costs is the life before it.
_START, _RUN = 4.0, 3.0


@dataclass(frozen=True)
class Aim:
    """One kill: at the `time`-th pass of a point, or so many seconds after the order to run or a query's start."""

    point: str
    time: int = 1
    seconds: float | None = None

    @property
    def armed(self) -> str | None:
        """What the environment of the start must say, or None where the kill comes from outside."""
        return None if self.seconds is not None else f"{self.point}=kill@{self.time}"


def points(pipeline: Pipeline) -> tuple[str, ...]:
    """The points that this pipeline passes with every batch, in the order of a batch."""
    sinks = [entry.sink for query in pipeline.queries.values() for entry in query.to]
    found = dict.fromkeys(point for sink in sinks for point in sink.moments())
    return (COMMON[0], *found, COMMON[1])


def aims(pipeline: Pipeline, kills: int, seed: int, only: str | None = None) -> Iterator[Aim]:
    """So many kills: all points once in an order of their own, some random moments, and again."""
    chance = random.Random(f"{seed}/aims")  # noqa: S311 - nothing secret hangs on it
    named = [only] if only else list(points(pipeline))
    left = kills
    while left:
        turn = named if only else [*named, STARTING, *[RANDOM] * max(1, len(named) // 3)]
        for point in chance.sample(turn, len(turn))[:left]:
            if point == RANDOM:
                yield Aim(point, seconds=chance.random() * _RUN)
            elif point == STARTING:
                yield Aim(point, seconds=chance.random() * _START)
            else:
                yield Aim(point, chance.choice((1, 1, 2)))
            left -= 1
