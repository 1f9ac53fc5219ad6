"""Find where a table's rows differ from the expected ones, inside Spark. Only the differences are collected."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyspark import StorageLevel
from pyspark.sql import Window
from pyspark.sql import functions as F

from millstream.connectors.api.ddl import quote_name
from millstream.engine.batch.row_hash import canonical_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

# The frames are read several times, and too large for memory next to the shuffles that compare them.
KEPT = StorageLevel.DISK_ONLY

MISSING, SURPLUS, DIFFERENT = "missing", "surplus", "different"

_KEY, _HELD, _WANTED, _KIND, _TIMES = "_key", "_held", "_wanted", "_kind", "_times"
_HASHES = ("_hash", "_again")

Values = dict[str, str | None]


@dataclass(frozen=True)
class RowDifference:
    """One row that differs from the expected ones, with values formatted by `canonical_text`.

    `kind` is `missing`, `surplus` or `different`. `times` is the number of equal rows. `key` is the row's
    key, or all of its columns if there is no key. `columns` are those that differ, with both values.
    """

    kind: str
    key: Values
    times: int = 1
    columns: dict[str, tuple[str | None, str | None]] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """Return the difference as JSON data."""
        columns = {
            name: {"held": actual, "wanted": expected} for name, (actual, expected) in self.columns.items()
        }
        return {"kind": self.kind, "key": self.key, "times": self.times, "columns": columns}


@dataclass
class Differences:
    """The differences between `actual` and `expected`. Counts are of rows. The frames are cached until `forget`."""

    actual: DataFrame
    expected: DataFrame
    names: tuple[str, ...]
    """The columns that are compared."""
    key: tuple[str, ...]
    """The columns that identify a row. Empty if every row counts by itself."""
    counts: dict[str, int]
    rows_that_differ: DataFrame
    """One row per difference: its key or hashes, `_kind`, `_times`."""
    stored: Mapping[str, str]
    """Spark SQL for the values that are compared instead of those of `expected`, by column."""

    @property
    def is_equal(self) -> bool:
        """Whether there is no difference."""
        return not any(self.counts.values())

    def rows(self, limit: int) -> list[RowDifference]:
        """Return up to `limit` differences of each kind, in the order of their keys."""
        return [
            difference
            for kind in self.counts
            if self.counts[kind]
            for difference in self._show_differences(kind, limit)
        ]

    def absent(self, *, changed: bool = True) -> DataFrame:
        """Return the missing rows, each as often as it is missing, plus those of `different` keys if `changed`."""
        kinds = [MISSING, *([DIFFERENT] if changed else [])]
        differing = self.rows_that_differ.where(F.col(_KIND).isin(kinds))
        hashed = _with_hashes(self.expected, self.names, self.key, self.stored)
        if self.key:
            return hashed.join(differing.select(_KEY), _KEY, "left_semi").select(*_all_columns(self.expected))
        candidates = hashed.join(differing.select(*_HASHES, _TIMES), list(_HASHES))
        # The store may not distinguish rows of one hash, and each of them may be missing.
        equal_rows = Window.partitionBy(*_HASHES).orderBy(_HASHES[0])
        numbered = candidates.withColumn("_number", F.row_number().over(equal_rows))
        return numbered.where(F.col("_number") <= F.col(_TIMES)).select(*_all_columns(self.expected))

    def forget(self) -> None:
        """Free the cached frames in memory and on disk."""
        for frame in (self.rows_that_differ, self.actual, self.expected):
            frame.unpersist()

    def _show_differences(self, kind: str, limit: int) -> list[RowDifference]:
        key_columns = [_KEY] if self.key else list(_HASHES)
        sample = (
            self.rows_that_differ.where(F.col(_KIND) == kind).orderBy(*key_columns).limit(limit).persist()
        )
        try:
            actual = self._collect_texts(self.actual, sample, key_columns, {}) if kind != MISSING else {}
            expected = (
                self._collect_texts(self.expected, sample, key_columns, self.stored)
                if kind != SURPLUS
                else {}
            )
            shown_keys = [
                (tuple(row[name] for name in key_columns), int(row[_TIMES])) for row in sample.collect()
            ]
        finally:
            sample.unpersist()
        row_differences = [
            self._build_difference(kind, times, actual.get(key_values, []), expected.get(key_values, []))
            for key_values, times in shown_keys
        ]
        return sorted(
            row_differences,
            key=lambda difference: [(value is not None, value or "") for value in difference.key.values()],
        )

    def _collect_texts(
        self, frame: DataFrame, sample: DataFrame, key_columns: list[str], stored: Mapping[str, str]
    ) -> dict[Any, list[Values]]:
        """Return the rows of these keys as texts."""
        hashed = _with_hashes(frame, self.names, self.key, stored)
        texts = [
            canonical_text(frame.schema[name], stored.get(name)).alias(f"c{index}")
            for index, name in enumerate(self.names)
        ]
        by_key: dict[Any, list[Values]] = {}
        rows = (
            hashed.join(F.broadcast(sample.select(*key_columns)), key_columns, "left_semi")
            .select(*key_columns, *texts)
            .collect()
        )
        for row in rows:
            values = {name: row[f"c{index}"] for index, name in enumerate(self.names)}
            by_key.setdefault(tuple(row[name] for name in key_columns), []).append(values)
        return by_key

    def _build_difference(
        self, kind: str, times: int, actual: list[Values], expected: list[Values]
    ) -> RowDifference:
        row = (actual or expected)[0]
        key = {name: row[name] for name in self.key} if self.key else row
        if kind != DIFFERENT:
            return RowDifference(kind, key, times)
        # A key may have several expected rows, and a batch cannot tell which is the last. The nearest one is shown.
        row = next(candidate for candidate in actual if candidate not in expected)
        nearest = min(
            expected, key=lambda candidate: sum(candidate[name] != row[name] for name in self.names)
        )
        columns = {name: (row[name], nearest[name]) for name in self.names if row[name] != nearest[name]}
        return RowDifference(kind, key, times, columns)


def find_differences(
    actual: DataFrame,
    expected: DataFrame,
    key: Sequence[str] = (),
    excluded: Sequence[str] = (),
    stored: Mapping[str, str] = MappingProxyType({}),
) -> Differences:
    """Compare a table's rows with the expected ones. Both have the same columns, except for `excluded` all compared.

    `stored` is `Sink.stored_values`: it is compared instead of the expected values.

    With a `key`, a row is missing if its key is not held, surplus if its key is not wanted or is held more than once,
    and different if its key is wanted with other values. If a key is wanted with several rows, each of them is right.
    Without a key, a row is missing or surplus as many times as it is there too rarely or too often.
    """
    schema: StructType = expected.schema
    names = tuple(name for name in schema.names if name not in excluded)
    actual, expected = actual.persist(KEPT), expected.persist(KEPT)
    both = _with_side(actual, names, key, 0, {}).unionByName(_with_side(expected, names, key, 1, stored))
    rows_that_differ = (_diff_by_key(both) if key else _diff_by_row(both)).persist(KEPT)
    totals = {
        row[_KIND]: int(row["n"])
        for row in rows_that_differ.groupBy(_KIND).agg(F.sum(_TIMES).alias("n")).collect()
    }
    counts = {kind: totals.get(kind, 0) for kind in (MISSING, SURPLUS, DIFFERENT)}
    return Differences(actual, expected, names, tuple(key), counts, rows_that_differ, stored)


def _diff_by_key(both: DataFrame) -> DataFrame:
    # After a shuffle by the key, both groupings find their rows in one partition.
    rows = both.repartition(_KEY).groupBy(_KEY, *_HASHES).agg(*_side_counts())
    unexpected = F.sum(F.when(F.col(_WANTED) == 0, F.col(_HELD)).otherwise(0)).alias("_strange")
    keys = rows.groupBy(_KEY).agg(F.sum(_HELD).alias(_HELD), F.sum(_WANTED).alias(_WANTED), unexpected)
    actual, expected, unexpected_count = F.col(_HELD), F.col(_WANTED), F.col("_strange")
    kind = (
        F.when(actual == 0, MISSING)
        .when(expected == 0, SURPLUS)
        .when(unexpected_count == actual, DIFFERENT)
        .when(actual > 1, SURPLUS)
    )
    times = F.when(kind != SURPLUS, 1).when(expected == 0, actual).otherwise(actual - 1)
    return keys.select(_KEY, kind.alias(_KIND), times.cast("long").alias(_TIMES)).where(
        F.col(_KIND).isNotNull()
    )


def _diff_by_row(both: DataFrame) -> DataFrame:
    rows = both.groupBy(*_HASHES).agg(*_side_counts()).where(F.col(_HELD) != F.col(_WANTED))
    kind = F.when(F.col(_HELD) < F.col(_WANTED), MISSING).otherwise(SURPLUS)
    times = F.abs(F.col(_HELD) - F.col(_WANTED))
    return rows.select(*_HASHES, kind.alias(_KIND), times.cast("long").alias(_TIMES))


def _side_counts() -> tuple[Column, Column]:
    side = F.col("_side")
    return F.sum(1 - side).alias(_HELD), F.sum(side).alias(_WANTED)


def _with_side(
    frame: DataFrame, names: Sequence[str], key: Sequence[str], side: int, stored: Mapping[str, str]
) -> DataFrame:
    key_columns = [_KEY, *_HASHES] if key else list(_HASHES)
    return _with_hashes(frame, names, key, stored).select(*key_columns, F.lit(side).alias("_side"))


def _with_hashes(
    frame: DataFrame, names: Sequence[str], key: Sequence[str], stored: Mapping[str, str]
) -> DataFrame:
    """Return the frame with the texts of its key as an array, and two hashes of its compared columns.

    With 128 bits, no two of a million rows are taken for the same.
    """
    texts = [canonical_text(frame.schema[name], stored.get(name)) for name in names]
    # Spark's hash skips NULL, so a flag for NULL is hashed too.
    parts = [part for text in texts for part in (text.isNull(), text)]
    hashed = frame.withColumn(_HASHES[0], F.xxhash64(*parts))
    hashed = hashed.withColumn(_HASHES[1], F.xxhash64(F.lit(1), *reversed(parts)))
    if not key:
        return hashed
    keys = [canonical_text(frame.schema[name], stored.get(name)) for name in key]
    return hashed.withColumn(_KEY, F.to_json(F.array(*keys)))


def _all_columns(frame: DataFrame) -> list[Column]:
    return [F.col(quote_name(name)) for name in frame.columns]
