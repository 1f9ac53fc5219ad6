"""Changes drawn at random, cut into batches in any order, and the table that must follow, in plain Python."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from local_frames import create_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CDC: dict[str, Any] = {
    "keys": ["list", "id"],
    "sequence_by": "lsn",
    "apply_as_deletes": "op = 'd'",
    "except_column_list": "op",
}
COLUMNS = "list INT, id INT, lsn BIGINT, text STRING, op STRING"


@dataclass(frozen=True)
class Change:
    """One change; `list` tells apart changes that were drawn for different tries."""

    list: int
    id: int
    lsn: int
    text: str | None
    op: str


def drawn(lists: int, batches: int, seed: int) -> list[list[Change]]:
    """Batches in which so many lists are mixed, each in an order of its own, with repeated and equal sequences."""
    draw = random.Random(seed)
    item: list[list[Change]] = [[] for _ in range(batches)]
    for number in range(lists):
        changes = [
            Change(
                number, draw.randrange(2), draw.randrange(6), draw.choice(["a", "b", "c"]), draw.choice("ucd")
            )
            for _ in range(draw.randrange(1, 9))
        ]
        sample = draw.sample(changes, draw.randrange(len(changes) + 1))
        for change in draw.sample([*changes, *sample], len(changes) + len(sample)):
            draw.choice(item).append(change)
    return item


def frame(spark: SparkSession, changes: list[Change]) -> DataFrame:
    rows = [(change.list, change.id, change.lsn, change.text, change.op) for change in changes]
    return create_frame(spark, rows, COLUMNS)


def latest(changes: list[Change]) -> set[tuple[Any, ...]]:
    """The rows of the latest state: list, id, lsn, text."""
    return {row[:4] for row in history(changes) if row[5] is None}


def history(changes: list[Change]) -> set[tuple[Any, ...]]:
    """The rows of the history: list, id, lsn, text, start, end."""
    actual = set()
    for key in {(change.list, change.id) for change in changes}:
        of_key = [change for change in changes if (change.list, change.id) == key]
        times = sorted({change.lsn for change in of_key})
        for time, end in zip(times, [*times[1:], None], strict=True):
            here = [change for change in of_key if change.lsn == time]
            if any(change.op == "d" for change in here):
                continue
            actual.add((*key, time, max(str(change.text) for change in here), time, end))
    return actual
