"""Changes drawn at random, cut into batches in any order, and the table that must follow, in plain Python."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
    cut: list[list[Change]] = [[] for _ in range(batches)]
    for number in range(lists):
        changes = [
            Change(
                number, draw.randrange(2), draw.randrange(6), draw.choice(["a", "b", "c"]), draw.choice("ucd")
            )
            for _ in range(draw.randrange(1, 9))
        ]
        again = draw.sample(changes, draw.randrange(len(changes) + 1))
        for change in draw.sample([*changes, *again], len(changes) + len(again)):
            draw.choice(cut).append(change)
    return cut


def frame(spark: SparkSession, changes: list[Change]) -> DataFrame:
    rows = [(one.list, one.id, one.lsn, one.text, one.op) for one in changes]
    return spark.createDataFrame(rows, COLUMNS)


def latest(changes: list[Change]) -> set[tuple[Any, ...]]:
    """The rows of the latest state: list, id, lsn, text."""
    return {row[:4] for row in history(changes) if row[5] is None}


def history(changes: list[Change]) -> set[tuple[Any, ...]]:
    """The rows of the history: list, id, lsn, text, start, end."""
    found = set()
    for key in {(one.list, one.id) for one in changes}:
        of_key = [one for one in changes if (one.list, one.id) == key]
        times = sorted({one.lsn for one in of_key})
        for time, end in zip(times, [*times[1:], None], strict=True):
            here = [one for one in of_key if one.lsn == time]
            if any(one.op == "d" for one in here):
                continue
            found.add((*key, time, max(str(one.text) for one in here), time, end))
    return found
