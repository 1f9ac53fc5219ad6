"""The same input cut into other micro-batches: random splits, with restarts and crashes between."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from millstream.pipeline.model import Keep
from millstream.testing.case import Crash, Expected, Feed, Record, Restart, Step

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from random import Random

    from millstream.diagnostics.finding import Span
    from millstream.pipeline.model import Pipeline
    from millstream.testing.case import Action, Case, Fed

# A batch costs a tenth of a second or two, and what goes wrong between batches shows in a few of them.
MOST_BATCHES = 4
# Up to so many rows the first split gives each row a batch of its own, which shows most mistakes at once.
ONE_BY_ONE = 6
# Draws in a row that give nothing unseen: there are no more splits, or hardly any.
STALE = 30
CRASHES = ("before_sink", "after_sink")


@dataclass(frozen=True)
class Item:
    """One row or message of the input. `partition` is what order is kept in."""

    number: int
    """Its place in the case, from 0."""
    source: str
    partition: str
    fed: Fed


@dataclass(frozen=True)
class Part:
    """One micro-batch of a split."""

    items: tuple[int, ...]
    """Numbers of its items in the order in which they arrive."""
    restart: bool = False
    """The run ends before it and starts again."""
    crash: str | None = None
    """Where the run dies in this batch, which is then repeated; None where it lives."""

    @property
    def begins(self) -> bool:
        """Is it read by a run that has just started again?"""
        return self.restart or self.crash is not None


Split = tuple[Part, ...]


def items(case: Case) -> tuple[Item, ...]:
    """All input of a case, in its order."""
    found: list[Item] = []
    for step in case.steps:
        for action in step.actions:
            if isinstance(action, Feed):
                for source, rows in action.rows.items():
                    found += [
                        Item(len(found) + at, source, _partition(case.pipeline, source, fed), fed)
                        for at, fed in enumerate(rows)
                    ]
    return tuple(found)


def whole(given: Sequence[Item]) -> Split:
    """All input in one batch."""
    return (Part(tuple(one.number for one in given)),)


def draw(given: Sequence[Item], chance: Random) -> Split:
    """One random split: order kept within a partition, and shuffled across partitions and sources.

    In half of the splits the run ends once between two batches and starts again; in half of them it dies in one.
    """
    order = _arrival(given, chance)
    many = min(len(order), chance.randint(2, MOST_BATCHES))
    cuts = [0, *sorted(chance.sample(range(1, len(order)), many - 1)), len(order)] if order else []
    parts = [Part(tuple(order[begin:end])) for begin, end in pairwise(cuts)]
    if len(parts) > 1 and chance.random() < 0.5:
        at = chance.randrange(1, len(parts))
        parts[at] = replace(parts[at], restart=True)
    if parts and chance.random() < 0.5:
        at = chance.randrange(len(parts))
        parts[at] = replace(parts[at], crash=chance.choice(CRASHES))
    return tuple(parts)


def drawn(given: Sequence[Item], many: int, chance: Random) -> list[Split]:
    """That many different splits, or as many as are found where the input has fewer."""
    found: dict[Split, None] = {}
    if 1 < len(given) <= ONE_BY_ONE and many:
        found[tuple(Part((one.number,)) for one in given)] = None
    stale = 0
    while len(found) < many and stale < STALE and len(given) > 1:
        split = draw(given, chance)
        stale = stale + 1 if split in found else 0
        found[split] = None
    return list(found)


def without(split: Split, gone: Collection[int]) -> Split:
    """The split without those items; a batch that is left empty goes with its restart and crash."""
    parts = (replace(part, items=tuple(one for one in part.items if one not in gone)) for part in split)
    return tuple(part for part in parts if part.items)


def runs(split: Split) -> Split:
    """The split with all that one run reads in one batch."""
    found: list[Part] = []
    for part in split:
        if found and not part.begins:
            found[-1] = replace(found[-1], items=found[-1].items + part.items)
        else:
            found.append(Part(part.items, restart=bool(found)))
    return tuple(found)


def steps(split: Split, given: Sequence[Item], where: Span) -> tuple[Step, ...]:
    """The split as steps of a case that expect nothing."""
    by_number = {one.number: one for one in given}
    return tuple(Step(tuple(_actions(part, by_number)), Expected(), where) for part in split)


def _actions(part: Part, given: Mapping[int, Item]) -> list[Action]:
    rows: dict[str, list[Fed]] = {}
    for number in part.items:
        rows.setdefault(given[number].source, []).append(given[number].fed)
    feed = Feed({source: tuple(some) for source, some in rows.items()})
    before: list[Action] = [Restart()] if part.restart else []
    return [*before, feed, *([Crash(part.crash)] if part.crash else [])]


def _arrival(given: Sequence[Item], chance: Random) -> list[int]:
    """An order of arrival: each partition begins and ends at times of its own, so that some lag behind."""
    partitions: dict[tuple[str, str], list[Item]] = {}
    for one in given:
        partitions.setdefault((one.source, one.partition), []).append(one)
    arriving: list[tuple[float, int, int]] = []
    for at, rows in enumerate(partitions.values()):
        begin, end = sorted((chance.random(), chance.random()))
        moments = sorted(chance.uniform(begin, end) for _ in rows)
        arriving += [(moment, at, one.number) for moment, one in zip(moments, rows, strict=True)]
    # Python's sort is stable, and rows of a partition were put in their order.
    return [number for _, _, number in sorted(arriving, key=lambda one: one[:2])]


def _partition(pipeline: Pipeline, source: str, fed: Fed) -> str:
    """What order is kept in: a message's partition; all rows of any other source are one."""
    if isinstance(fed, Record):
        return f"{fed.topic or ''}/{fed.partition}"
    entry = pipeline.sources.get(source)
    if entry is None or not entry.source.payload:
        return ""
    kept = {one.value for one in entry.keep}
    topic = fed.get(Keep.TOPIC.value) if Keep.TOPIC.value in kept else None
    partition = fed.get(Keep.PARTITION.value) if Keep.PARTITION.value in kept else None
    return f"{topic or ''}/{partition or 0}"
