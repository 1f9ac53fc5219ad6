"""Compare a sink's rows with the batch result: count missing, doubled and different rows, and show their keys."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.engine.batch.row_hash import Rows, count_rows
from millstream.spec.guarantee import Guarantee
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from millstream.pipeline.model import SinkEntry

# The number of keys of each kind that is shown.
SHOWN = 10
BATCH = "batch"
"""The column of `Sink.versions` with the id of the batch that wrote a row."""

Key = tuple[str | None, ...]


@dataclass
class Verdict:
    """A sink's rows compared with the expected ones. Rows are counted, and `keys` shows some of each kind."""

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

    is_unproven: bool = False
    """Whether the sink should have no rows at all, so that an empty sink proves nothing."""
    is_compared: bool = True
    """Whether its rows could be compared."""

    @property
    def is_equal(self) -> bool:
        """Whether every expected row is there, as often as the guarantee promises."""
        is_exactly_once = Guarantee(self.guarantee) is not Guarantee.AT_LEAST_ONCE
        return not self.is_unproven and not (
            self.missing or self.different or (is_exactly_once and self.doubled)
        )

    def count_row(self, kind: str, key: Key, times: int = 1) -> None:
        """Count a row of that kind, and store its key."""
        setattr(self, kind, getattr(self, kind) + times)
        examples = self.keys.setdefault(kind, [])
        if len(examples) < SHOWN:
            examples.append(", ".join("NULL" if part is None else part for part in key))


def compare_sink(
    query: str, name: str, entry: SinkEntry, mode: OutputMode, before: DataFrame, after: DataFrame
) -> Verdict:
    """Compare one sink. `before` and `after` are the batch results without and with the rows that close windows.

    In append mode a window is written once it is closed, so rows that only the closing input produced may be in the
    sink but need not be. In the other modes everything is written, and the result over all input counts.
    """
    sink = entry.sink
    keyless = mode is OutputMode.UPDATE and not sink.row_key
    verdict = Verdict(query, name, mode.value, sink.guarantee(mode)[0].value)
    outcome = sink.outcome(after)
    if outcome is not None:
        after, before = outcome, sink.outcome(before) or before
    names = after.columns if outcome is not None else sink.takes(after.columns)
    schema = after.schema
    sink_schema = type(schema)([schema[name] for name in names])
    spark = after.sparkSession
    actual = sink.versions(spark, sink_schema) if keyless else sink.read_all(spark, sink_schema, mode)
    if actual is None:
        verdict.note, verdict.is_compared = "its rows cannot be compared", False
        return verdict
    removed = (
        f"coalesce(CAST(({sink.delete_condition}) AS BOOLEAN), false)" if sink.delete_condition else "false"
    )
    accepted = count_rows(after.where(f"NOT {removed}"), names, schema)
    required = (
        count_rows(before.where(f"NOT {removed}"), names, schema) if mode is OutputMode.APPEND else accepted
    )
    deleted = count_rows(after.where(removed), names, schema) if sink.delete_condition else Counter()
    if outcome is not None:
        # Rows that the closing input deleted need not be there.
        deleted = required - accepted
    actual_rows = count_rows(
        actual, [*names, BATCH] if keyless else names, actual.schema if keyless else schema
    )
    verdict.rows = actual_rows.total()
    if not required and not deleted:
        # A sink that must be empty is empty after every crash too.
        verdict.note, verdict.is_unproven = "no row should be in it: nothing is proven", True
    if keyless:
        verdict.note = "only the last version of each row is compared"
        compare_by_version(verdict, actual_rows, accepted)
    elif sink.replaces_table(mode):
        lower = [name.lower() for name in names]
        compare_by_key(
            verdict,
            [lower.index(key.lower()) for key in sink.row_key],
            actual_rows,
            required,
            accepted,
            deleted,
        )
    else:
        compare_by_row(verdict, actual_rows, required, accepted)
    return verdict


def compare_by_row(verdict: Verdict, actual_rows: Rows, required: Rows, accepted: Rows) -> None:
    """Compare rows one by one. Each must be there as often as in one of the results, or in between."""
    for row in actual_rows.keys() | required.keys() | accepted.keys():
        minimum, maximum = sorted((required[row], accepted[row]))
        count = actual_rows[row]
        if count < minimum:
            verdict.count_row("missing", row, minimum - count)
        elif count > maximum:
            verdict.count_row("doubled" if maximum else "different", row, count - maximum)


def compare_by_version(verdict: Verdict, actual_rows: Rows, accepted: Rows) -> None:
    """Check that some batch wrote every row of the result, and that no batch wrote a row twice.

    `actual_rows` has the batch after each row's own columns. The versions before the last one depend on how the input
    was split into batches. If the result itself has equal rows, a batch may have them too.
    """
    actual_keys = {row[:-1] for row in actual_rows}
    for row in accepted.keys() - actual_keys:
        verdict.count_row("missing", row, accepted[row])
    if max(accepted.values(), default=1) == 1:
        for row, times in actual_rows.items():
            if times > 1:
                verdict.count_row("doubled", row[:-1], times - 1)


def compare_by_key(
    verdict: Verdict,
    at: list[int],
    actual_rows: Rows,
    required: Rows,
    accepted: Rows,
    deleted: Rows | None = None,
) -> None:
    """Check that each key is there once, with a row of the result. A batch has no order among several such rows.

    `deleted` are rows that delete the one of their key, so that such a key need not be there.
    """
    accepted_by_key: dict[Key, Counter[Any]] = defaultdict(Counter)
    for row in required | accepted:
        accepted_by_key[_key(row, at)][row] += 1
    rows_by_key: dict[Key, list[Key]] = defaultdict(list)
    for row, times in actual_rows.items():
        rows_by_key[_key(row, at)] += [row] * times
    for key in (
        {_key(row, at) for row in required} - rows_by_key.keys() - {_key(row, at) for row in deleted or ()}
    ):
        verdict.count_row("missing", key)
    for key, rows in rows_by_key.items():
        if len(rows) > 1:
            verdict.count_row("doubled", key, len(rows) - 1)
        if any(row not in accepted_by_key[key] for row in rows):
            verdict.count_row("different", key)


def _key(row: Key, at: list[int]) -> Key:
    return tuple(row[index] for index in at)
