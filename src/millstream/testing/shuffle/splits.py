"""Draw random splits of the same input into micro-batches, with restarts and crashes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from millstream.pipeline.model import KeptColumn
from millstream.testing.model import Crash, Expected, Feed, Record, Restart, Step

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from random import Random

    from millstream.diagnostics.finding import Span
    from millstream.pipeline.model import Pipeline
    from millstream.testing.model import Action, Case, Fed

# A batch takes 0.1 to 0.2 s, and a mistake between batches shows in a few of them.
MOST_BATCHES = 4
# Up to this many rows, the first split has one batch per row, which shows most mistakes at once.
ONE_BY_ONE = 6
# After this many draws in a row without a new split, there are hardly any more splits.
STALE = 30
CRASHES = ("before_sink", "after_sink")


@dataclass(frozen=True)
class Item:
    """One row or message of the input. Order is preserved within a `partition`."""

    number: int
    """The index in the case's input, from 0."""
    source: str
    partition: str
    record: Fed


@dataclass(frozen=True)
class SplitBatch:
    """One micro-batch of a split."""

    items: tuple[int, ...]
    """The numbers of its items in the order of arrival."""
    has_restart: bool = False
    """Whether the query stops and starts again before the batch."""
    crash: str | None = None
    """The crash point in this batch, which is then repeated, or None."""

    @property
    def is_first(self) -> bool:
        """Whether a restarted query reads the batch."""
        return self.has_restart or self.crash is not None


Split = tuple[SplitBatch, ...]


def list_items(case: Case) -> tuple[Item, ...]:
    """Return all input of a case, in its order."""
    collected: list[Item] = []
    for step in case.steps:
        for action in step.actions:
            if isinstance(action, Feed):
                for source, rows in action.rows.items():
                    collected += [
                        Item(
                            len(collected) + at, source, _partition_key(case.pipeline, source, record), record
                        )
                        for at, record in enumerate(rows)
                    ]
    return tuple(collected)


def single_batch(inputs: Sequence[Item]) -> Split:
    """Return the split with all input in one batch."""
    return (SplitBatch(tuple(item.number for item in inputs)),)


def draw_split(inputs: Sequence[Item], chance: Random) -> Split:
    """Draw a random split. Order is preserved within a partition and shuffled across partitions and sources.

    Half of the splits have one restart between two batches; half of them have one crash.
    """
    order = _draw_arrival_order(inputs, chance)
    batches = min(len(order), chance.randint(2, MOST_BATCHES))
    cuts = [0, *sorted(chance.sample(range(1, len(order)), batches - 1)), len(order)] if order else []
    parts = [SplitBatch(tuple(order[begin:end])) for begin, end in pairwise(cuts)]
    if len(parts) > 1 and chance.random() < 0.5:
        at = chance.randrange(1, len(parts))
        parts[at] = replace(parts[at], has_restart=True)
    if parts and chance.random() < 0.5:
        at = chance.randrange(len(parts))
        parts[at] = replace(parts[at], crash=chance.choice(CRASHES))
    return tuple(parts)


def draw_splits(inputs: Sequence[Item], number: int, chance: Random) -> list[Split]:
    """Draw that many different splits, or fewer if the input has fewer."""
    splits: dict[Split, None] = {}
    if 1 < len(inputs) <= ONE_BY_ONE and number:
        splits[tuple(SplitBatch((item.number,)) for item in inputs)] = None
    stale_draws = 0
    while len(splits) < number and stale_draws < STALE and len(inputs) > 1:
        split = draw_split(inputs, chance)
        stale_draws = stale_draws + 1 if split in splits else 0
        splits[split] = None
    return list(splits)


def remove_items(split: Split, removed: Collection[int]) -> Split:
    """Return the split without those items. An empty batch is removed together with its restart and crash."""
    parts = (replace(part, items=tuple(item for item in part.items if item not in removed)) for part in split)
    return tuple(part for part in parts if part.items)


def merge_runs(split: Split) -> Split:
    """Return the split with all batches between two restarts merged."""
    merged: list[SplitBatch] = []
    for part in split:
        if merged and not part.is_first:
            merged[-1] = replace(merged[-1], items=merged[-1].items + part.items)
        else:
            merged.append(SplitBatch(part.items, has_restart=bool(merged)))
    return tuple(merged)


def to_steps(split: Split, inputs: Sequence[Item], span: Span) -> tuple[Step, ...]:
    """Convert the split to steps without expectations."""
    by_number = {item.number: item for item in inputs}
    return tuple(Step(tuple(_build_actions(part, by_number)), Expected(), span) for part in split)


def _build_actions(part: SplitBatch, items_by_number: Mapping[int, Item]) -> list[Action]:
    rows: dict[str, list[Fed]] = {}
    for number in part.items:
        rows.setdefault(items_by_number[number].source, []).append(items_by_number[number].record)
    feed = Feed({source: tuple(items_of_source) for source, items_of_source in rows.items()})
    before: list[Action] = [Restart()] if part.has_restart else []
    return [*before, feed, *([Crash(part.crash)] if part.crash else [])]


def _draw_arrival_order(inputs: Sequence[Item], chance: Random) -> list[int]:
    """Draw an order of arrival. Each partition has its own start and end time, so that some lag behind."""
    partitions: dict[tuple[str, str], list[Item]] = {}
    for item in inputs:
        partitions.setdefault((item.source, item.partition), []).append(item)
    arriving: list[tuple[float, int, int]] = []
    for at, rows in enumerate(partitions.values()):
        begin, end = sorted((chance.random(), chance.random()))
        times = sorted(chance.uniform(begin, end) for _ in rows)
        arriving += [(time, at, item.number) for time, item in zip(times, rows, strict=True)]
    # Python's sort is stable, so that rows of a partition stay in their order.
    return [number for _, _, number in sorted(arriving, key=lambda item: item[:2])]


def _partition_key(pipeline: Pipeline, source: str, record: Fed) -> str:
    """Return the key within which order is preserved: a message's partition, or one key for any other source."""
    if isinstance(record, Record):
        return f"{record.topic or ''}/{record.partition}"
    entry = pipeline.sources.get(source)
    if entry is None or not entry.source.has_payload:
        return ""
    metadata_names = {keep.value for keep in entry.keep}
    topic = record.get(KeptColumn.TOPIC.value) if KeptColumn.TOPIC.value in metadata_names else None
    partition = (
        record.get(KeptColumn.PARTITION.value) if KeptColumn.PARTITION.value in metadata_names else None
    )
    return f"{topic or ''}/{partition or 0}"
