"""Hold rows to what is expected of them: count those that break it, leave them out, set them aside, or stop."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from millstream.spec.expectation import Expectation, Otherwise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame

# Columns of ours beside the rows; the names cannot meet a user's.
BROKEN = "_millstream_broken"
RAW = "_millstream_raw"
# Figures of the metric that are no expectation's: those have names of letters, digits and _.
LETTERS, SET_ASIDE, BYTES = "set aside as", "set aside", "bytes set aside"
# A failure shows so much of the row that broke an expectation.
_SHOWN = 300
_FLEETING = re.compile(
    r"\b(?:current_\w+|now|curdate|localtimestamp|rand\w*|uuid|shuffle|unix_timestamp)\b", re.I
)


def metric(name: str) -> str:
    """The name of the metric of a source or view: rows that broke each expectation, and what is set aside."""
    return f"millstream:expect:{name}"


def stable(expect: Mapping[str, Expectation]) -> bool:
    """Do the same rows break them whenever they are asked? By the names of functions: a clock, a dice."""
    return not any(_FLEETING.search(one.that) for one in expect.values())


def broken(expect: Mapping[str, Expectation]) -> Column:
    """An array that tells of each expectation, in order, whether the row breaks it. NULL breaks it."""
    return F.array(*(~F.coalesce(F.expr(one.that), F.expr("false")) for one in expect.values()))


def names_of(expect: Mapping[str, Expectation], otherwise: Otherwise) -> Column:
    """The expectations with that consequence that a row breaks, as `a, b`; empty for none."""
    named = [
        F.when(F.col(BROKEN)[at], F.lit(name))
        for at, (name, one) in enumerate(expect.items())
        if one.otherwise is otherwise
    ]
    return F.concat_ws(", ", *named)


def reason_of(expect: Mapping[str, Expectation]) -> Column:
    """Why a row is set aside: what was expected of it."""
    said = [
        F.when(F.col(BROKEN)[at], F.lit(f"expected {one.that}"))
        for at, one in enumerate(expect.values())
        if one.otherwise is Otherwise.DEAD_LETTER
    ]
    return F.concat_ws("; ", *said)


def any_of(expect: Mapping[str, Expectation], otherwise: Otherwise) -> Column:
    """Does a row break an expectation with that consequence?"""
    found = F.expr("false")
    for at, one in enumerate(expect.values()):
        if one.otherwise is otherwise:
            found = found | F.col(BROKEN)[at]
    return found


def lost(expect: Mapping[str, Expectation]) -> Column:
    """Is a row set aside? One that ends the query is not, and one that is set aside is not dropped too."""
    return any_of(expect, Otherwise.DEAD_LETTER)


def hold(
    name: str,
    what: str,
    expect: Mapping[str, Expectation],
    frame: DataFrame,
    *,
    place: Sequence[str] = (),
    letter: Column | None = None,
) -> DataFrame:
    """The rows that stay, without our columns. Counts in passing, in the metric of `name`.

    `what` names the source or view in a failure. `frame` has the rows' columns, and a source's raw columns in
    the struct `RAW`, of which `place` tells where a record stands. `letter` is the struct to keep of a row that
    is set aside, where such rows cannot be read again.
    """
    columns = [column for column in frame.columns if column != RAW]
    judged = frame.withColumn(BROKEN, broken(expect))
    figures = [F.count_if(F.col(BROKEN)[at]).alias(one) for at, one in enumerate(expect)]
    size = F.length(F.col(RAW)["value"]) if "value" in _raw(frame) else F.lit(1000)
    figures += [
        F.count_if(lost(expect)).alias(SET_ASIDE),
        F.sum(F.when(lost(expect), size)).alias(BYTES),
    ]
    if letter is not None:
        figures.append(F.to_json(F.collect_list(F.when(lost(expect), letter))).alias(LETTERS))
    # Spark moves nothing past a metric: each expression runs once a row, before anything reads its result.
    judged = judged.observe(metric(name), *figures)
    gone = lost(expect) | any_of(expect, Otherwise.DROP)
    ends = any_of(expect, Otherwise.FAIL)
    said = [F.lit("expectation '"), names_of(expect, Otherwise.FAIL), F.lit(f"' of {what} does not hold: ")]
    said += [F.substring(row_of(columns), 1, _SHOWN)]
    for column in place:
        said += [F.lit(f", {column} "), F.coalesce(F.col(RAW)[column].cast("string"), F.lit("unknown"))]
    stays = ~gone
    if any(one.otherwise is Otherwise.FAIL for one in expect.values()):
        stays = F.when(ends, F.raise_error(F.concat(*said)).cast("boolean")).otherwise(stays)
    return judged.where(stays).drop(BROKEN, RAW)


def row_of(columns: Sequence[str]) -> Column:
    """A row as JSON, nulls and all."""
    quoted = (F.col(f"`{column.replace('`', '``')}`") for column in dict.fromkeys(columns))
    return F.to_json(F.struct(*quoted), {"ignoreNullFields": "false"})


def _raw(frame: DataFrame) -> list[str]:
    """The raw columns that stand beside the rows."""
    return frame.select(f"{RAW}.*").columns if RAW in frame.columns else []
