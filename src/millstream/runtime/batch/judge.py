"""Hold what a sink has against the batch answer: missing, doubled and different rows, with their keys."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.runtime.batch.canonical import Rows, counted
from millstream.spec.guarantee import Guarantee
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from millstream.pipeline.model import SinkEntry

# So many keys of each kind are told.
SHOWN = 10
BATCH = "batch"
"""The column of `Sink.versions` that says which batch wrote a row."""

Key = tuple[str | None, ...]


@dataclass
class Verdict:
    """What a sink has against what it must have. Rows are counted; `keys` shows some of each kind."""

    query: str
    sink: str
    mode: str
    guarantee: str
    rows: int = 0
    missing: int = 0
    doubled: int = 0
    different: int = 0
    keys: dict[str, list[str]] = field(default_factory=dict)
    note: str = ""

    unproven: bool = False
    """Must it hold no row at all, so that nothing is proven by its holding none?"""
    compared: bool = True
    """Could its rows be compared?"""

    @property
    def fine(self) -> bool:
        """Is every row there that must be, and as often as is promised?"""
        once = Guarantee(self.guarantee) is not Guarantee.AT_LEAST_ONCE
        return not self.unproven and not (self.missing or self.different or (once and self.doubled))

    def tell(self, kind: str, key: Key, times: int = 1) -> None:
        """Count a row of that kind, and keep its key."""
        setattr(self, kind, getattr(self, kind) + times)
        shown = self.keys.setdefault(kind, [])
        if len(shown) < SHOWN:
            shown.append(", ".join("NULL" if part is None else part for part in key))


def judge(
    query: str, name: str, entry: SinkEntry, mode: OutputMode, before: DataFrame, after: DataFrame
) -> Verdict:
    """Compare one sink. `before` and `after` are the answers without and with the rows that close windows.

    In append mode a window is written once it is closed, so what only the closing rows made may be there and
    need not be. In the other modes everything is written, and the answer over all input counts.
    """
    sink = entry.sink
    keyless = mode is OutputMode.UPDATE and not sink.row_key
    verdict = Verdict(query, name, mode.value, sink.guarantee(mode)[0].value)
    made = sink.outcome(after)
    if made is not None:
        after, before = made, sink.outcome(before) or before
    names = after.columns if made is not None else sink.takes(after.columns)
    schema = after.schema
    taken = type(schema)([schema[name] for name in names])
    spark = after.sparkSession
    held = sink.versions(spark, taken) if keyless else sink.whole(spark, taken, mode)
    if held is None:
        verdict.note, verdict.compared = "its rows cannot be compared", False
        return verdict
    removed = f"coalesce(CAST(({sink.removes}) AS BOOLEAN), false)" if sink.removes else "false"
    most = counted(after.where(f"NOT {removed}"), names, schema)
    least = counted(before.where(f"NOT {removed}"), names, schema) if mode is OutputMode.APPEND else most
    gone = counted(after.where(removed), names, schema) if sink.removes else Counter()
    if made is not None:
        # What the closing rows have deleted need not be there.
        gone = least - most
    there = counted(held, [*names, BATCH] if keyless else names, held.schema if keyless else schema)
    verdict.rows = there.total()
    if not least and not gone:
        # A sink that must hold nothing holds it after every crash.
        verdict.note, verdict.unproven = "no row is for it: nothing is proven", True
    if keyless:
        verdict.note = "of the versions of a row the last one is compared"
        by_version(verdict, there, most)
    elif sink.replaces(mode):
        lower = [name.lower() for name in names]
        by_key(verdict, [lower.index(key.lower()) for key in sink.row_key], there, least, most, gone)
    else:
        by_row(verdict, there, least, most)
    return verdict


def by_row(verdict: Verdict, there: Rows, least: Rows, most: Rows) -> None:
    """Every row stands for itself: it is there as often as in one of the answers, or between them."""
    for row in there.keys() | least.keys() | most.keys():
        few, many = sorted((least[row], most[row]))
        has = there[row]
        if has < few:
            verdict.tell("missing", row, few - has)
        elif has > many:
            verdict.tell("doubled" if many else "different", row, has - many)


def by_version(verdict: Verdict, there: Rows, most: Rows) -> None:
    """Every row of the answer is there as some batch wrote it, and no batch wrote a row twice.

    `there` has the batch behind each row's own columns. Which versions came before the last one depends on how the
    input was cut into batches. Where the answer itself has equal rows, a batch may have them too.
    """
    written = {row[:-1] for row in there}
    for row in most.keys() - written:
        verdict.tell("missing", row, most[row])
    if max(most.values(), default=1) == 1:
        for row, times in there.items():
            if times > 1:
                verdict.tell("doubled", row[:-1], times - 1)


def by_key(
    verdict: Verdict, at: list[int], there: Rows, least: Rows, most: Rows, gone: Rows | None = None
) -> None:
    """A key is there once, with a row that the answer has for it; a batch knows no order among several.

    `gone` are rows that remove the one of their key: such a key need not be there.
    """
    allowed: dict[Key, Counter[Any]] = defaultdict(Counter)
    for row in least | most:
        allowed[_key(row, at)][row] += 1
    found: dict[Key, list[Key]] = defaultdict(list)
    for row, times in there.items():
        found[_key(row, at)] += [row] * times
    for key in {_key(row, at) for row in least} - found.keys() - {_key(row, at) for row in gone or ()}:
        verdict.tell("missing", key)
    for key, rows in found.items():
        if len(rows) > 1:
            verdict.tell("doubled", key, len(rows) - 1)
        if any(row not in allowed[key] for row in rows):
            verdict.tell("different", key)


def _key(row: Key, at: list[int]) -> Key:
    return tuple(row[place] for place in at)
