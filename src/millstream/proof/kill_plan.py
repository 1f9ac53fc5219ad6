"""Plan the moment of each kill: every failpoint in turn, and random moments."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.pipeline.model import Pipeline

RANDOM = "a random moment"
STARTING = "a random moment of the start"
# Failpoints that every pipeline passes; its sinks add more.
COMMON = ("batch.begun", "batch.delivered")
LETTERS = "letters.kept"
# Seconds in which a driver with a session opens its writers and starts its queries, and in which these deliver a
# batch or two. They are short, because a kill costs the driver's lifetime before it.
_START, _RUN = 4.0, 3.0


# With at least this many kills, each kind of victim occurs.
_EACH = 6


class KilledProcess(StrEnum):
    """The processes of a driver that a kill affects."""

    BOTH = "both"
    """Python and its JVM at once, as when the machine or the container goes down."""
    PYTHON = "python"
    """Python alone: its JVM lives some seconds longer and may complete its writes."""
    JVM = "jvm"
    """The JVM alone: Python still has the lock and its connections, and ends by itself."""


@dataclass(frozen=True)
class KillTarget:
    """One kill: at the `time`-th pass of a failpoint, or `seconds` after the order to run or a query's start."""

    point: str
    time: int = 1
    seconds: float | None = None
    victim: KilledProcess = KilledProcess.BOTH

    @property
    def armed(self) -> str | None:
        """The failpoint setting of the start, or None if the driver is killed from outside."""
        if self.seconds is not None:
            return None
        # Python freezes at the failpoint until its JVM is dead, and then resumes.
        action = "stop" if self.victim is KilledProcess.JVM else "kill"
        return f"{self.point}={action}@{self.time}"


def list_failpoints(pipeline: Pipeline) -> tuple[str, ...]:
    """Return the failpoints that this pipeline passes in every batch, or may pass, in their order."""
    sinks = [entry.sink for query in pipeline.queries.values() for entry in query.to]
    sink_points = dict.fromkeys(point for sink in sinks for point in sink.failpoints())
    has_letters = any(map(pipeline.may_write_dead_letters, (*pipeline.sources, *pipeline.views)))
    return (COMMON[0], *sink_points, *(LETTERS,) * has_letters, COMMON[1])


def plan_kills(pipeline: Pipeline, kills: int, seed: int, only: str | None = None) -> Iterator[KillTarget]:
    """Yield one aim per kill: all failpoints once in random order, some random moments, and so on.

    Half of the kills kill Python and its JVM, the others one of them; with six kills or more, each kind occurs.
    """
    for aim, victim in zip(_moments(pipeline, kills, seed, only), choose_victims(kills, seed), strict=True):
        yield replace(aim, victim=victim)


def choose_victims(kills: int, seed: int) -> list[KilledProcess]:
    """Return the victim of each kill."""
    chance = random.Random(f"{seed}/victims")  # noqa: S311 - as below
    guaranteed = list(KilledProcess) if kills >= _EACH else []
    random_victims = chance.choices(list(KilledProcess), weights=(2, 1, 1), k=kills - len(guaranteed))
    return chance.sample([*guaranteed, *random_victims], kills)


def _moments(pipeline: Pipeline, kills: int, seed: int, only: str | None) -> Iterator[KillTarget]:
    chance = random.Random(f"{seed}/aims")  # noqa: S311 - not used for secrets
    failpoints = [only] if only else list(list_failpoints(pipeline))
    remaining = kills
    while remaining:
        turn = failpoints if only else [*failpoints, STARTING, *[RANDOM] * max(1, len(failpoints) // 3)]
        for point in chance.sample(turn, len(turn))[:remaining]:
            if point == RANDOM:
                yield KillTarget(point, seconds=chance.random() * _RUN)
            elif point == STARTING:
                yield KillTarget(point, seconds=chance.random() * _START)
            else:
                yield KillTarget(point, chance.choice((1, 1, 2)))
            remaining -= 1
