"""Find where a table's rows differ from those it should hold, inside Spark: only the differences come back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark import StorageLevel
from pyspark.sql import functions as F

from millstream.runtime.batch.canonical import canonical

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

# Read several times and too large to keep in memory beside the shuffles that compare it.
KEPT = StorageLevel.DISK_ONLY

MISSING, SURPLUS, DIFFERENT = "missing", "surplus", "different"

_KEY, _HELD, _WANTED, _KIND, _TIMES = "_key", "_held", "_wanted", "_kind", "_times"
_HASHES = ("_hash", "_again")

Values = dict[str, str | None]


@dataclass(frozen=True)
class Difference:
    """One row that is not as it should be, in the words of `canonical`.

    `kind` is `missing`, `surplus` or `different`; `times` how many rows it stands for. `key` is the row's key, or
    all of its columns where it has none. `columns` are those that differ, each with what is held and wanted.
    """

    kind: str
    key: Values
    times: int = 1
    columns: dict[str, tuple[str | None, str | None]] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        told = {name: {"held": held, "wanted": wanted} for name, (held, wanted) in self.columns.items()}
        return {"kind": self.kind, "key": self.key, "times": self.times, "columns": told}


@dataclass
class Differences:
    """Where `held` differs from `wanted`. Counts are of rows; the frames are kept until `forget`."""

    held: DataFrame
    wanted: DataFrame
    names: tuple[str, ...]
    """The columns that are compared."""
    key: tuple[str, ...]
    """The columns that make a row the same row; none where every row stands for itself."""
    counts: dict[str, int]
    found: DataFrame
    """A row a difference: its key or hashes, `_kind`, `_times`."""

    @property
    def fine(self) -> bool:
        """Is there no difference?"""
        return not any(self.counts.values())

    def rows(self, limit: int) -> list[Difference]:
        """Up to so many differences of each kind, in the order of their keys."""
        return [one for kind in self.counts if self.counts[kind] for one in self._some(kind, limit)]

    def absent(self, *, changed: bool = True) -> DataFrame:
        """The wanted rows that are missing, each as often as it is; with those of `different` keys if `changed`."""
        kinds = [MISSING, *([DIFFERENT] if changed else [])]
        found = self.found.where(F.col(_KIND).isin(kinds))
        wanted = _marked(self.wanted, self.names, self.key)
        if self.key:
            return wanted.join(found.select(_KEY), _KEY, "left_semi").select(*_all(self.wanted))
        once = wanted.dropDuplicates(list(_HASHES)).join(found.select(*_HASHES, _TIMES), list(_HASHES))
        many = once.withColumn("_copy", F.explode(F.sequence(F.lit(1), F.col(_TIMES).cast("int"))))
        return many.select(*_all(self.wanted))

    def forget(self) -> None:
        """Let go of what is kept in memory and on disk."""
        for frame in (self.found, self.held, self.wanted):
            frame.unpersist()

    def _some(self, kind: str, limit: int) -> list[Difference]:
        by = [_KEY] if self.key else list(_HASHES)
        chosen = self.found.where(F.col(_KIND) == kind).orderBy(*by).limit(limit).persist()
        try:
            held = self._texts(self.held, chosen, by) if kind != MISSING else {}
            wanted = self._texts(self.wanted, chosen, by) if kind != SURPLUS else {}
            told = [(tuple(row[name] for name in by), int(row[_TIMES])) for row in chosen.collect()]
        finally:
            chosen.unpersist()
        made = [self._difference(kind, times, held.get(at, []), wanted.get(at, [])) for at, times in told]
        return sorted(made, key=lambda one: [(value is not None, value or "") for value in one.key.values()])

    def _texts(self, frame: DataFrame, chosen: DataFrame, by: list[str]) -> dict[Any, list[Values]]:
        """The rows of these keys as texts."""
        marked = _marked(frame, self.names, self.key)
        texts = [canonical(frame.schema[name]).alias(f"c{at}") for at, name in enumerate(self.names)]
        found: dict[Any, list[Values]] = {}
        rows = marked.join(F.broadcast(chosen.select(*by)), by, "left_semi").select(*by, *texts).collect()
        for row in rows:
            values = {name: row[f"c{at}"] for at, name in enumerate(self.names)}
            found.setdefault(tuple(row[name] for name in by), []).append(values)
        return found

    def _difference(self, kind: str, times: int, held: list[Values], wanted: list[Values]) -> Difference:
        row = (held or wanted)[0]
        key = {name: row[name] for name in self.key} if self.key else row
        if kind != DIFFERENT:
            return Difference(kind, key, times)
        # A key may have several right rows, of which a batch cannot tell the last: the nearest one is shown.
        row = next(one for one in held if one not in wanted)
        near = min(wanted, key=lambda one: sum(one[name] != row[name] for name in self.names))
        columns = {name: (row[name], near[name]) for name in self.names if row[name] != near[name]}
        return Difference(kind, key, times, columns)


def differences(
    held: DataFrame, wanted: DataFrame, key: Sequence[str] = (), apart: Sequence[str] = ()
) -> Differences:
    """Compare rows held with rows wanted; both have the same columns, and `apart` are not compared.

    With a `key` a row is missing when its key is not held, surplus when its key is not wanted or is held more than
    once, different when its key is wanted with other values; where a key is wanted with several rows each of them
    is right. Without one, a row is missing or surplus as often as it is there too seldom or too often.
    """
    schema: StructType = wanted.schema
    names = tuple(name for name in schema.names if name not in apart)
    held, wanted = held.persist(KEPT), wanted.persist(KEPT)
    both = _side(held, names, key, 0).unionByName(_side(wanted, names, key, 1))
    found = (_by_key(both) if key else _by_row(both)).persist(KEPT)
    told = {row[_KIND]: int(row["n"]) for row in found.groupBy(_KIND).agg(F.sum(_TIMES).alias("n")).collect()}
    counts = {kind: told.get(kind, 0) for kind in (MISSING, SURPLUS, DIFFERENT)}
    return Differences(held, wanted, names, tuple(key), counts, found)


def _by_key(both: DataFrame) -> DataFrame:
    # Once shuffled by the key, both groupings find their rows together.
    rows = both.repartition(_KEY).groupBy(_KEY, *_HASHES).agg(*_sums())
    strange = F.sum(F.when(F.col(_WANTED) == 0, F.col(_HELD)).otherwise(0)).alias("_strange")
    keys = rows.groupBy(_KEY).agg(F.sum(_HELD).alias(_HELD), F.sum(_WANTED).alias(_WANTED), strange)
    held, wanted, odd = F.col(_HELD), F.col(_WANTED), F.col("_strange")
    kind = (
        F.when(held == 0, MISSING)
        .when(wanted == 0, SURPLUS)
        .when(odd == held, DIFFERENT)
        .when(held > 1, SURPLUS)
    )
    times = F.when(kind != SURPLUS, 1).when(wanted == 0, held).otherwise(held - 1)
    return keys.select(_KEY, kind.alias(_KIND), times.cast("long").alias(_TIMES)).where(
        F.col(_KIND).isNotNull()
    )


def _by_row(both: DataFrame) -> DataFrame:
    rows = both.groupBy(*_HASHES).agg(*_sums()).where(F.col(_HELD) != F.col(_WANTED))
    kind = F.when(F.col(_HELD) < F.col(_WANTED), MISSING).otherwise(SURPLUS)
    times = F.abs(F.col(_HELD) - F.col(_WANTED))
    return rows.select(*_HASHES, kind.alias(_KIND), times.cast("long").alias(_TIMES))


def _sums() -> tuple[Column, Column]:
    side = F.col("_side")
    return F.sum(1 - side).alias(_HELD), F.sum(side).alias(_WANTED)


def _side(frame: DataFrame, names: Sequence[str], key: Sequence[str], side: int) -> DataFrame:
    kept = [_KEY, *_HASHES] if key else list(_HASHES)
    return _marked(frame, names, key).select(*kept, F.lit(side).alias("_side"))


def _marked(frame: DataFrame, names: Sequence[str], key: Sequence[str]) -> DataFrame:
    """The frame with the texts of its key as an array, and two hashes of its compared columns.

    128 bits: among a million rows no two are taken for one another.
    """
    texts = [canonical(frame.schema[name]) for name in names]
    # Spark's hash passes over NULL, so whether there is one is hashed too.
    parts = [part for text in texts for part in (text.isNull(), text)]
    marked = frame.withColumn(_HASHES[0], F.xxhash64(*parts))
    marked = marked.withColumn(_HASHES[1], F.xxhash64(F.lit(1), *reversed(parts)))
    if not key:
        return marked
    return marked.withColumn(_KEY, F.to_json(F.array(*(canonical(frame.schema[name]) for name in key))))


def _all(frame: DataFrame) -> list[Column]:
    return [F.col(f"`{name.replace('`', '``')}`") for name in frame.columns]
