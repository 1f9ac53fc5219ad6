"""Check rows against expectations: count the ones that fail, drop them, make them dead letters, or stop."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from millstream.connectors.api.ddl import JSON_OPTIONS, quote_name
from millstream.spec.expectation import Expectation, Otherwise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame

# Internal columns next to the row's own. The names cannot collide with a user's.
BROKEN = "_millstream_broken"
RAW = "_millstream_raw"
# Fields of the metric that are not an expectation's. Names of expectations have letters, digits and _ only.
LETTERS, REJECTED, BYTES = "dead letters", "dead letter count", "dead letter bytes"
REMOVED = "removed rows"
# The number of characters of a failing row that an error message shows.
_SHOWN_CHARACTERS = 300
_NONDETERMINISTIC = re.compile(
    r"\b(?:current_\w+|now|curdate|localtimestamp|rand\w*|uuid|shuffle|unix_timestamp)\b", re.I
)


def metric_name(name: str) -> str:
    """Return the name of the metric of a source or view, which counts failing rows and dead letters."""
    return f"millstream:expect:{name}"


def is_deterministic(expect: Mapping[str, Expectation]) -> bool:
    """Return whether the same rows fail at each evaluation, judged by functions such as a clock or rand()."""
    return not any(_NONDETERMINISTIC.search(expectation.that) for expectation in expect.values())


def failed_flags(expect: Mapping[str, Expectation]) -> Column:
    """Return an array with a flag for each expectation, in order, true if the row fails it. NULL fails."""
    return F.array(
        *(~F.coalesce(F.expr(expectation.that), F.expr("false")) for expectation in expect.values())
    )


def failed_names(expect: Mapping[str, Expectation], otherwise: Otherwise) -> Column:
    """Return the names of the failed expectations with that consequence, as `a, b`, or an empty string."""
    names = [
        F.when(F.col(BROKEN)[index], F.lit(name))
        for index, (name, expectation) in enumerate(expect.items())
        if expectation.otherwise is otherwise
    ]
    return F.concat_ws(", ", *names)


def rejection_reason(expect: Mapping[str, Expectation]) -> Column:
    """Return the reason for a dead letter: what was expected of the row."""
    reasons = [
        F.when(F.col(BROKEN)[index], F.lit(f"expected {expectation.that}"))
        for index, expectation in enumerate(expect.values())
        if expectation.otherwise is Otherwise.DEAD_LETTER
    ]
    return F.concat_ws("; ", *reasons)


def fails_any(expect: Mapping[str, Expectation], otherwise: Otherwise) -> Column:
    """Return whether a row fails an expectation with that consequence."""
    is_failed = F.expr("false")
    for index, expectation in enumerate(expect.values()):
        if expectation.otherwise is otherwise:
            is_failed = is_failed | F.col(BROKEN)[index]
    return is_failed


def is_dead_letter(expect: Mapping[str, Expectation]) -> Column:
    """Return whether a row becomes a dead letter. A row that ends the query does not, and is not dropped too."""
    return fails_any(expect, Otherwise.DEAD_LETTER)


def apply_expectations(
    name: str,
    what: str,
    expect: Mapping[str, Expectation],
    frame: DataFrame,
    *,
    place: Sequence[str] = (),
    letters: Column | None = None,
) -> DataFrame:
    """Return the rows that pass, without internal columns, and count the others in the metric of `name`.

    `what` names the source or view in a failure. `frame` has the rows' columns, and a source's raw columns in the
    struct `RAW`, of which `place` gives a record's position. `letters` is an aggregate of the rows that become dead
    letters, for the metric.
    """
    columns = [column for column in frame.columns if column != RAW]
    checked = frame.withColumn(BROKEN, failed_flags(expect))
    metrics = [
        F.count_if(F.col(BROKEN)[index]).alias(expectation) for index, expectation in enumerate(expect)
    ]
    is_removed = is_dead_letter(expect) | fails_any(expect, Otherwise.DROP)
    is_fatal = fails_any(expect, Otherwise.FAIL)
    message = [
        F.lit("expectation '"),
        failed_names(expect, Otherwise.FAIL),
        F.lit(f"' of {what} does not hold: "),
        F.substring(row_as_json(columns), 1, _SHOWN_CHARACTERS),
    ]
    for column in place:
        message += [F.lit(f", {column} "), F.coalesce(F.col(RAW)[column].cast("string"), F.lit("unknown"))]
    is_passing = ~is_removed
    counted = is_removed
    if any(expectation.otherwise is Otherwise.FAIL for expectation in expect.values()):
        # Also in the metric: Spark merges the filter with the conditions of a view, and evaluates `amount IS NOT
        # NULL`, which it derives from them, before it.
        error = F.when(is_fatal, F.raise_error(F.concat(*message)).cast("boolean"))
        is_passing, counted = error.otherwise(is_passing), error.otherwise(is_removed)
    size = F.length(F.col(RAW)["value"]) if "value" in _raw_names(frame) else F.lit(1000)
    metrics += [
        F.count_if(is_dead_letter(expect)).alias(REJECTED),
        F.sum(F.when(is_dead_letter(expect), size)).alias(BYTES),
        F.count_if(counted).alias(REMOVED),
    ]
    if letters is not None:
        metrics.append(letters.alias(LETTERS))
    # Spark moves nothing past a metric, so each expression runs once per row, before anything reads its result.
    checked = checked.observe(metric_name(name), *metrics)
    return checked.where(is_passing).drop(BROKEN, RAW)


def json_array(row: Column, is_taken: Column, most: int) -> Column:
    """Return an aggregate: up to `most` of the rows for which `is_taken` holds, as the text of a JSON array.

    Not `to_json` of the aggregate: the driver would run that, and Spark's writer of JSON is one object that all
    queries over the same source share, and that two threads must not use at the same time.
    """
    # The aggregate leaves out rows without an order, so that a good record costs a comparison.
    items = F.max_by(F.when(is_taken, F.to_json(row)), F.when(is_taken, F.lit(1)), most)
    return F.concat(F.lit("["), F.array_join(items, ","), F.lit("]"))


def row_as_json(columns: Sequence[str]) -> Column:
    """Return a row as JSON, with nulls and microseconds."""
    quoted = (F.col(quote_name(column)) for column in dict.fromkeys(columns))
    return F.to_json(F.struct(*quoted), JSON_OPTIONS)


def _raw_names(frame: DataFrame) -> list[str]:
    """Return the raw columns next to the row's own."""
    return frame.select(f"{RAW}.*").columns if RAW in frame.columns else []
