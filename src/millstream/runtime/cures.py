"""What to do about each thing that Spark refuses, by Spark's own words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.spec.mode import OutputMode


@dataclass(frozen=True)
class Cure:
    """One refusal of Spark's and its cure."""

    ids: tuple[str, ...]
    """What the catalogue of findings calls it."""
    refused: str
    """The thing that is refused, for people."""
    says: re.Pattern[str]
    """Spark's words or error class."""
    fix: str
    """What to do, beginning with a verb."""
    other_mode: bool = False
    """May another output mode be proposed, if Spark takes the plan in one?"""


def _cure(ids: str, refused: str, says: str, fix: str, *, other_mode: bool = False) -> Cure:
    return Cure(tuple(ids.split()), refused, re.compile(says), fix, other_mode)


# The first whose words are found counts. The words are those of Spark 4.2.
CURES: tuple[Cure, ...] = (
    _cure(
        "SP010",
        "a query that reads no stream",
        r"WRITE_STREAM_NOT_ALLOWED|Queries without streaming sources",
        "read one of its sources as a stream, or take the query out",
    ),
    _cure(
        "SP001",
        "asking a stream for its rows: `count()`, `show()`, `collect()`, `cache()`",
        r"Queries with streaming sources must be executed|Cannot return immediate result",
        "let the view return the DataFrame, and do this to each batch in a sink",
    ),
    _cure(
        "SP003",
        "a method of tables on a stream, such as `write`",
        r"CALL_ON_STREAMING_DATASET_UNSUPPORTED",
        "let the view return the DataFrame, and write it by a sink of a query",
    ),
    _cure(
        "SP011",
        "an aggregation in append mode whose keys hold no watermarked time",
        r"streaming aggregations without watermark",
        "set a watermark on the source and group by its time column or by a window of it, unchanged from the source",
        other_mode=True,
    ),
    _cure(
        "SP012",
        "a session window in update mode",
        r"session window streaming aggregations",
        "run the query in output mode append, with a watermark on its time column, or in output mode complete",
    ),
    _cure(
        "SP013",
        "complete mode without an aggregation",
        r"no streaming aggregations",
        "aggregate in the query, or hand over rows as they come",
        other_mode=True,
    ),
    _cure(
        "SP014",
        "a stream of a table's changes that Spark works on further, in a mode other than append",
        r"Change Data Capture \(CDC\) streaming reads",
        "read the changes as they are in one query, and work on them in another",
        other_mode=True,
    ),
    _cure(
        "SP020",
        "several `mapGroupsWithState`, or one beside a `flatMapGroupsWithState`",
        r"Mixing mapGroupsWithStates|Multiple (map|flatMap)GroupsWithStates",
        "keep one function with state in the query, or chain them with transformWithState",
    ),
    _cure(
        "SP021",
        "several `applyInPandasWithState` in one query",
        r"Multiple applyInPandasWithStates",
        "keep one function with state in the query, or chain them with transformWithState",
    ),
    _cure(
        "SP024",
        "an event-time timeout without a watermark",
        r"Event-time timeout not supported without watermark",
        "set a watermark on the source, or use a timeout of processing time",
    ),
    _cure(
        "SP023",
        "`applyInPandasWithState` in update mode together with an aggregation",
        r"in update mode is not supported with aggregation",
        "give the function the mode 'append' and put it before the aggregation",
    ),
    _cure(
        "SP023",
        "`applyInPandasWithState` after an aggregation",
        r"in append mode is not supported after aggregation",
        "put the function before the aggregation, or count in the function itself",
    ),
    _cure(
        "SP022 SP023",
        "a function with state whose mode is not the query's",
        r"GroupsWithState.* is not supported with \w+ output mode|"
        r"applyInPandasWithState in \w+ mode is not supported with \w+ output mode",
        "give the function the mode of the query",
        other_mode=True,
    ),
    _cure(
        "SP025",
        "a stream as the first state of a function with state",
        r"is not supported as the initial state",
        "read the initial state as a static table",
    ),
    _cure(
        "SP026",
        "state kept as Avro by anything but `transformWithState`",
        r"State store encoding format as avro",
        "remove the setting 'spark.sql.streaming.stateStore.encodingFormat'",
    ),
    _cure(
        "SP031 SP032 SP033 SP034",
        "an outer or semi join of two streams whose keys or times no watermark bounds",
        r"without a watermark in the join keys",
        "set a watermark on both sources and join on a time with a watermark, "
        "or bound how far apart the times may be: ON … AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR",
    ),
    _cure(
        "SP035",
        "a left anti join, or NOT EXISTS, with a stream on the right",
        r"joins with a streaming DataFrame/Dataset on the right are not supported",
        "write it as a LEFT JOIN with a bound on the time and keep the rows whose right side is null",
    ),
    _cure(
        "SP030 SP031 SP032 SP033 SP034",
        "a join of two streams in a mode it is not made for",
        r"join between two streaming DataFrames/Datasets is not supported in",
        "join in a query of its own in append mode, and work on what it writes in another",
        other_mode=True,
    ),
    _cure(
        "SP033",
        "a full outer join of a stream with a static table",
        r"FullOuter joins? with (a )?streaming",
        "keep the stream's side only: a LEFT JOIN with the stream on the left",
    ),
    _cure(
        "SP031 SP034",
        "a left outer or left semi join with the stream on the right and a static table on the left",
        r"join with a streaming DataFrame/Dataset on the right and a static",
        "put the stream on the left of the join",
    ),
    _cure(
        "SP032",
        "a right outer join with the stream on the left and a static table on the right",
        r"RightOuter join with a streaming",
        "write it as a LEFT JOIN with the stream on the left",
    ),
    _cure(
        "SP030",
        "a kind of join that streams do not have",
        r"Join type .* is not supported",
        "use an inner, outer or left semi join",
    ),
    _cure(
        "SP036",
        "a join condition with another value each time, such as `rand()`",
        r"INVALID_NON_DETERMINISTIC_EXPRESSIONS",
        "take what is not deterministic out of the condition",
    ),
    _cure(
        "SP037",
        "a cogroup with a stream",
        r"CoGrouping with a streaming",
        "join the streams, or union them and use transformWithState",
    ),
    _cure(
        "SP040",
        "state after an aggregation in update or complete mode, or after a function with an event-time timeout",
        r"Detected pattern of possible 'correctness' issue",
        "write the first result to a table or topic and read it in a second query",
        other_mode=True,
    ),
    _cure(
        "SP050",
        "a distinct aggregate: `count(DISTINCT …)`",
        r"Distinct aggregations are not supported",
        "use approx_count_distinct, or drop duplicates before the aggregation in append mode",
    ),
    _cure(
        "SP051",
        "a sort, but of aggregated rows in complete mode",
        r"Sorting is not supported",
        "remove the sort: rows of a stream have no last one; sort where the result is read",
        other_mode=True,
    ),
    _cure(
        "SP052",
        "a limit in update mode",
        r"Limits are not supported",
        "remove the limit",
        other_mode=True,
    ),
    _cure(
        "SP052", "an offset", r"Offset is not supported", "remove OFFSET: a stream has no row to count from"
    ),
    _cure(
        "SP053",
        "a sample",
        r"Sampling is not supported",
        "keep a share of the keys instead: WHERE pmod(xxhash64(id), 100) < 10",
    ),
    _cure(
        "SP054",
        "a window over rows: `row_number() OVER (…)`",
        r"NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING",
        "group by window(ts, …), or take the newest row of a key with max_by(…, ts)",
    ),
    _cure(
        "SP063",
        "a sequential union of what it does not take",
        r"NESTED_SEQUENTIAL_STREAMING_UNION|NOT_STREAMING_DATASET|STATEFUL_CHILDREN_NOT_SUPPORTED",
        "follow one plain stream by another, and keep state only after the last",
    ),
    _cure(
        "SP055",
        "a union of a stream and a static table",
        r"Union between streaming and batch",
        "read both as streams",
    ),
    _cure(
        "SP055",
        "EXCEPT with a stream on the right",
        r"Except on a streaming|Except with a streaming",
        "join instead: a LEFT JOIN whose right side is null",
    ),
    _cure(
        "SP055",
        "INTERSECT with a stream",
        r"Intersect of streaming|Intersect between",
        "use a LEFT SEMI JOIN",
    ),
    _cure(
        "SP056",
        "`monotonically_increasing_id()`",
        r"Expression\(s\): .* is not supported with streaming",
        "make the id of what the row holds: sha2(concat_ws('|', …), 256)",
    ),
    _cure(
        "SP057",
        "a stream inside a subquery: IN, EXISTS or a single value",
        r"INVALID_SUBQUERY_EXPRESSION\.STREAMING_QUERY",
        "write the subquery as a join",
    ),
    _cure(
        "SP058",
        "a pivot that does not name its values",
        r"_LEGACY_ERROR_TEMP_3063|[Pp]ivot.*streaming",
        "list the values: pivot('kind', ['a', 'b']), or PIVOT (… FOR kind IN ('a', 'b'))",
    ),
    _cure(
        "SP059",
        "a command or an insert inside a stream",
        r"Commands like CreateTable|InsertIntoDir is not supported",
        "write by a sink of a query",
    ),
    _cure(
        "SP060",
        "grouping sets that Spark did not expand",
        r"Grouping Sets is not supported",
        "write a union of one aggregation a set",
    ),
    _cure(
        "SP061",
        "a watermark on what is not a TIMESTAMP column at the top",
        r"EVENT_TIME_IS_NOT_ON_TIMESTAMP_TYPE|EVENT_TIME_MUST_BE_TOP_LEVEL_COLUMN",
        "declare the column as a TIMESTAMP of its own, or cast it in a view and set the watermark in Python",
    ),
    _cure(
        "SP062",
        "`dropDuplicatesWithinWatermark` without a watermark",
        r"dropDuplicatesWithinWatermark is not supported on streaming",
        "set a watermark on the source",
    ),
    _cure(
        "SP002",
        "`dropDuplicatesWithinWatermark` on a static table",
        r"dropDuplicatesWithinWatermark is not supported with batch",
        "use dropDuplicates there",
    ),
    _cure(
        "SP066",
        "two named streams of one name, or a name that Spark does not take",
        r"STREAMING_QUERY_EVOLUTION_ERROR",
        "give each stream a name of its own, of letters, digits and underscores",
    ),
    _cure(
        "SP064",
        "the current time with a continuous trigger",
        r"Continuous processing does not support current time",
        "write a trigger such as '1 second'",
    ),
    _cure(
        "SP064",
        "more than map, filter and project with a continuous trigger",
        r"Continuous processing does not support|not supported with continuous trigger|Unknown type of trigger",
        "write a trigger such as '1 second'",
    ),
    _cure(
        "SP065",
        "real-time mode in append or complete mode",
        r"STREAMING_REAL_TIME_MODE\.OUTPUT_MODE_NOT_SUPPORTED",
        "write a trigger such as '1 second'",
        other_mode=True,
    ),
    _cure(
        "SP065",
        "a real-time trigger shorter than Spark takes",
        r"INVALID_STREAMING_REAL_TIME_MODE_TRIGGER_INTERVAL",
        "write 5 seconds or more: it is the time between checkpoints, not the delay of a row",
    ),
    _cure(
        "SP065",
        "an operator or a sink that real-time mode does not have",
        r"STREAMING_REAL_TIME_MODE",
        "write a trigger such as '1 second'",
    ),
    _cure(
        "SP070",
        "a sink in an output mode that it does not write",
        r"UNSUPPORTED_DATASOURCE|DELTA_UNSUPPORTED_OUTPUT_MODE",
        "choose a sink that takes changed rows",
        other_mode=True,
    ),
)


def cure(said: str, modes: Sequence[OutputMode] = ()) -> str:
    """What to do about what Spark said, its error class included; empty when nothing is known.

    `modes` are output modes in which Spark takes the same plan.
    """
    known = next((one for one in CURES if one.says.search(said)), None)
    if known is None:
        return ""
    if not known.other_mode or not modes:
        return known.fix
    return f"{known.fix}; or run the query in output mode {' or '.join(modes)}"
