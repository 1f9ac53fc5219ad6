"""Steps of the pipelines beside this file that SQL has no words for: deduplication, and state by pandas functions."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.sql import functions as f

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.state import GroupState


def count_all(words: DataFrame) -> DataFrame:
    """Each row once."""
    return words.dropDuplicates()


def by_word(words: DataFrame) -> DataFrame:
    """The first row of a word."""
    return words.dropDuplicates(["word"])


def by_word_and_n(words: DataFrame) -> DataFrame:
    """The first row of a word with that number."""
    return words.dropDuplicates(["word", "n"])


def twice(words: DataFrame) -> DataFrame:
    """Each row once, then the first of a word."""
    return words.dropDuplicates().dropDuplicates(["word"])


def folded(words: DataFrame) -> DataFrame:
    """The first row of a word, upper and lower case the same."""
    return words.select(f.collate("word", "UTF8_LCASE").alias("word")).dropDuplicates(["word"])


def unique(numbers: DataFrame) -> DataFrame:
    """Each time once."""
    return numbers.dropDuplicates()


def unique_values(numbers: DataFrame) -> DataFrame:
    """Each value and time once."""
    return numbers.dropDuplicates(["value", "at"])


def by_id_and_time(keyed: DataFrame) -> DataFrame:
    """The first row of an id at a time; the time stands first among the columns and last in the key."""
    return keyed.select("at", "id").dropDuplicates(["id", "at"])


def by_id(keyed: DataFrame) -> DataFrame:
    """The first row of an id."""
    return keyed.dropDuplicates(["id"])


def unmarked(plain: DataFrame) -> DataFrame:
    """A deduplication that needs a watermark, and has none."""
    return plain.dropDuplicatesWithinWatermark()


def redefined(twice: DataFrame) -> DataFrame:
    """A second watermark, on another column."""
    return twice.withWatermark("late", "2 minutes").groupBy(f.window("late", "1 minute")).count()


def redefined_above_dedup(twice: DataFrame) -> DataFrame:
    """A second watermark on rows that have been deduplicated, without the event time in the key."""
    return redefined(twice.dropDuplicates(["late"]))


def redefined_above_join(lefts: DataFrame, rights: DataFrame) -> DataFrame:
    """A second watermark on the rows of a join without bounds in time."""
    joined = lefts.join(rights.withColumnRenamed("at", "right_at"), "id")
    return (
        joined.withWatermark("right_at", "1 minute").groupBy("id", f.window("right_at", "1 minute")).count()
    )


def redefined_above_function(timed: DataFrame) -> DataFrame:
    """A second watermark on the rows of a function, which have none: Spark knows nothing of their times."""
    return _newest_times(timed, "append").withWatermark("newest", "10 seconds")


def pairs(lefts: DataFrame, rights: DataFrame) -> DataFrame:
    """A deduplication behind a join, with the event time of both sides."""
    met = f.expr("lefts.id = rights.id AND lefts.at = rights.at + INTERVAL 10 SECONDS")
    joined = lefts.alias("lefts").join(rights.alias("rights"), met)
    return joined.selectExpr("lefts.id", "lefts.at", "rights.at AS right_at").dropDuplicates()


def every(same: DataFrame) -> DataFrame:
    """All rows, with a watermark of their own."""
    return same.withWatermark("at", "5 seconds")


def evens(same: DataFrame) -> DataFrame:
    """The rows with an even key, with a watermark of their own: odd rows do not move it."""
    return same.where("key % 2 = 0").withWatermark("at", "5 seconds")


def drop_repeated(fives: DataFrame) -> DataFrame:
    """Each count of a window's end once."""
    return fives.selectExpr("n", "window.end AS until").dropDuplicates(["n", "until"])


def once_timed(fives: DataFrame) -> DataFrame:
    """Each count of a window's end once, forgotten with the window's time."""
    timed = fives.selectExpr("n", "window.end AS until", "window_time(window) AS timed")
    return timed.dropDuplicates(["n", "until", "timed"])


def running(words: DataFrame) -> DataFrame:
    """Counts up to two; with the third a word is forgotten, without a word about it."""
    return _counted(words, "NoTimeout", _count_to_two)


def marked(words: DataFrame) -> DataFrame:
    """Counts up to two; with the third a word is forgotten, and -1 comes out."""
    return _counted(words, "NoTimeout", _count_and_tell)


def count_words(words: DataFrame) -> DataFrame:
    """The same as rows that may be counted further."""
    return _counted(words, "NoTimeout", _count_and_tell, "append")


def idle(words: DataFrame) -> DataFrame:
    """Counts; -1 when a word was silent for ten seconds."""
    return _counted(words, "ProcessingTimeTimeout", _count_while_heard)


def newest(timed: DataFrame) -> DataFrame:
    """The newest time of a word; NULL when the watermark is five seconds past it."""
    return _newest_times(timed, "update")


def _newest_times(timed: DataFrame, mode: str) -> DataFrame:
    return timed.groupBy("word").applyInPandasWithState(
        _newest, "word string, newest timestamp", "newest timestamp", mode, "EventTimeTimeout"
    )


def _counted(words: DataFrame, timeout: str, function: Any, mode: str = "update") -> DataFrame:
    return words.groupBy("word").applyInPandasWithState(
        function, "word string, n int", "n int", mode, timeout
    )


def _total(frames: Iterator[pd.DataFrame], state: GroupState) -> int:
    return (state.get[0] if state.exists else 0) + sum(len(frame) for frame in frames)


def _count_to_two(
    key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    total = _total(frames, state)
    if total == 3:
        state.remove()
        return
    state.update((total,))
    yield pd.DataFrame({"word": [key[0]], "n": [total]})


def _count_and_tell(
    key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    total = _total(frames, state)
    if total == 3:
        state.remove()
        total = -1
    else:
        state.update((total,))
    yield pd.DataFrame({"word": [key[0]], "n": [total]})


def _count_while_heard(
    key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    if state.hasTimedOut:
        state.remove()
        total = -1
    else:
        total = _total(frames, state)
        state.update((total,))
        state.setTimeoutDuration(10_000)
    yield pd.DataFrame({"word": [key[0]], "n": [total]})


def _newest(key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    if state.hasTimedOut:
        state.remove()
        yield pd.DataFrame({"word": [key[0]], "newest": pd.Series([pd.NaT], dtype="datetime64[ns]")})
        return
    visited = max(frame["at"].max() for frame in frames).to_pydatetime()
    if state.exists:
        visited = max(visited, state.get[0])
    state.update((visited,))
    state.setTimeoutTimestamp(int((visited.replace(tzinfo=UTC) + timedelta(seconds=5)).timestamp() * 1000))
    yield pd.DataFrame({"word": [key[0]], "newest": [visited]})
