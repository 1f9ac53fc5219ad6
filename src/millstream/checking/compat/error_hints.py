"""Find a fix for each query that Spark refuses, by Spark's error message."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.spec.output_mode import OutputMode


@dataclass(frozen=True)
class Cure:
    """One kind of refusal by Spark, and its fix."""

    construct: str
    """The refused construct, for the documentation."""
    pattern: re.Pattern[str]
    """A pattern of Spark's message or error class."""
    fix: str
    """The fix, beginning with a verb."""
    has_other_mode: bool = False
    """True if another output mode may be proposed when Spark accepts the plan in one."""


def _cure(construct: str, pattern: str, fix: str, *, has_other_mode: bool = False) -> Cure:
    return Cure(construct, re.compile(pattern), fix, has_other_mode)


# The first entry whose pattern matches applies. The messages are those of Spark 4.2.
CURES: tuple[Cure, ...] = (
    _cure(
        "a query that reads no stream",
        r"WRITE_STREAM_NOT_ALLOWED|Queries without streaming sources",
        "read one of its sources as a stream, or remove the query",
    ),
    _cure(
        "reading the rows of a stream: `count()`, `show()`, `collect()`, `cache()`",
        r"Queries with streaming sources must be executed|Cannot return immediate result",
        "let the view return the DataFrame, and do this for each batch in a sink",
    ),
    _cure(
        "a batch method on a stream, such as `write`",
        r"CALL_ON_STREAMING_DATASET_UNSUPPORTED",
        "let the view return the DataFrame, and write it with a sink of a query",
    ),
    _cure(
        "an aggregation in append mode without a watermarked time among its keys",
        r"streaming aggregations without watermark",
        "set a watermark on the source and group by its time column or by a window of it, unchanged from the source",
        has_other_mode=True,
    ),
    _cure(
        "a session window in update mode",
        r"session window streaming aggregations",
        "run the query in output mode append, with a watermark on its time column, or in output mode complete",
    ),
    _cure(
        "complete mode without an aggregation",
        r"no streaming aggregations",
        "aggregate in the query, or write the rows as they arrive",
        has_other_mode=True,
    ),
    _cure(
        "a change data feed that the query processes further, in a mode other than append",
        r"Change Data Capture \(CDC\) streaming reads",
        "read the changes unmodified in one query, and process them in another",
        has_other_mode=True,
    ),
    _cure(
        "several `mapGroupsWithState`, or one together with a `flatMapGroupsWithState`",
        r"Mixing mapGroupsWithStates|Multiple (map|flatMap)GroupsWithStates",
        "keep one stateful function in the query, or chain them with transformWithState",
    ),
    _cure(
        "several `applyInPandasWithState` in one query",
        r"Multiple applyInPandasWithStates",
        "keep one stateful function in the query, or chain them with transformWithState",
    ),
    _cure(
        "an event-time timeout without a watermark",
        r"Event-time timeout not supported without watermark",
        "set a watermark on the source, or use a processing-time timeout",
    ),
    _cure(
        "`applyInPandasWithState` in update mode together with an aggregation",
        r"in update mode is not supported with aggregation",
        "give the function the output mode 'append' and put it before the aggregation",
    ),
    _cure(
        "`applyInPandasWithState` after an aggregation",
        r"in append mode is not supported after aggregation",
        "put the function before the aggregation, or aggregate in the function itself",
    ),
    _cure(
        "a stateful function whose output mode is not the query's",
        r"GroupsWithState.* is not supported with \w+ output mode|"
        r"applyInPandasWithState in \w+ mode is not supported with \w+ output mode",
        "give the function the output mode of the query",
        has_other_mode=True,
    ),
    _cure(
        "a stream as the initial state of a stateful function",
        r"is not supported as the initial state",
        "read the initial state as a static table",
    ),
    _cure(
        "state encoded as Avro by an operator other than `transformWithState`",
        r"State store encoding format as avro",
        "remove the setting 'spark.sql.streaming.stateStore.encodingFormat'",
    ),
    _cure(
        "an outer or semi join of two streams whose keys or times no watermark bounds",
        r"without a watermark in the join keys",
        "set a watermark on both sources and join on a time with a watermark, "
        "or bound how far apart the times may be: ON … AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR",
    ),
    _cure(
        "a left anti join, or NOT EXISTS, with a stream on the right",
        r"joins with a streaming DataFrame/Dataset on the right are not supported",
        "write it as a LEFT JOIN with a bound on the time and keep the rows whose right side is null",
    ),
    _cure(
        "a join of two streams in an output mode that does not support it",
        r"join between two streaming DataFrames/Datasets is not supported in",
        "join in a separate query in append mode, and process its output in another",
        has_other_mode=True,
    ),
    _cure(
        "a full outer join of a stream with a static table",
        r"FullOuter joins? with (a )?streaming",
        "preserve only the stream's side: a LEFT JOIN with the stream on the left",
    ),
    _cure(
        "a left outer or left semi join with the stream on the right and a static table on the left",
        r"join with a streaming DataFrame/Dataset on the right and a static",
        "put the stream on the left of the join",
    ),
    _cure(
        "a right outer join with the stream on the left and a static table on the right",
        r"RightOuter join with a streaming",
        "write it as a LEFT JOIN with the stream on the left",
    ),
    _cure(
        "a join type that streams do not support",
        r"Join type .* is not supported",
        "use an inner, outer or left semi join",
    ),
    _cure(
        "a join condition that is not deterministic, such as `rand()`",
        r"INVALID_NON_DETERMINISTIC_EXPRESSIONS",
        "remove the non-deterministic expression from the condition",
    ),
    _cure(
        "a cogroup with a stream",
        r"CoGrouping with a streaming",
        "join the streams, or union them and use transformWithState",
    ),
    _cure(
        "a stateful operator after an aggregation in update or complete mode, or after an event-time timeout",
        r"Detected pattern of possible 'correctness' issue",
        "write the first result to a table or topic and read it in a second query",
        has_other_mode=True,
    ),
    _cure(
        "a distinct aggregate: `count(DISTINCT …)`",
        r"Distinct aggregations are not supported",
        "use size(collect_set(…)), whose state grows with each value, or approx_count_distinct",
    ),
    _cure(
        "a sort, except of aggregated rows in complete mode",
        r"Sorting is not supported",
        "remove the sort: a stream has no last row; sort where the result is read",
        has_other_mode=True,
    ),
    _cure(
        "a limit in update mode",
        r"Limits are not supported",
        "remove the limit",
        has_other_mode=True,
    ),
    _cure(
        "an offset",
        r"Offset is not supported",
        "remove OFFSET: a stream has no first row to count from",
    ),
    _cure(
        "a sample",
        r"Sampling is not supported",
        "keep a share of the keys instead: WHERE pmod(xxhash64(id), 100) < 10",
    ),
    _cure(
        "a window over rows: `row_number() OVER (…)`",
        r"NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING",
        "group by window(ts, …), or take the first rows of a key with max_by(…, ts) or max_by(…, ts, 10)",
    ),
    _cure(
        "a sequential union of inputs that it does not support",
        r"NESTED_SEQUENTIAL_STREAMING_UNION|NOT_STREAMING_DATASET|STATEFUL_CHILDREN_NOT_SUPPORTED",
        "use plain streams as its inputs, and put stateful operators after the union",
    ),
    _cure(
        "a union of a stream and a static table",
        r"Union between streaming and batch",
        "read both as streams",
    ),
    _cure(
        "EXCEPT with a stream on the right",
        r"Except on a streaming|Except with a streaming",
        "join instead: a LEFT JOIN whose right side is null",
    ),
    _cure(
        "INTERSECT with a stream",
        r"Intersect of streaming|Intersect between",
        "use a LEFT SEMI JOIN",
    ),
    _cure(
        "`monotonically_increasing_id()`",
        r"Expression\(s\): .* is not supported with streaming",
        "derive the id from the row's values: sha2(concat_ws('|', …), 256)",
    ),
    _cure(
        "a stream inside a subquery: IN, EXISTS or a single value",
        r"INVALID_SUBQUERY_EXPRESSION\.STREAMING_QUERY",
        "write the subquery as a join",
    ),
    _cure(
        "a pivot that does not name its values",
        r"_LEGACY_ERROR_TEMP_3063|[Pp]ivot.*streaming",
        "list the values: pivot('kind', ['a', 'b']), or PIVOT (… FOR kind IN ('a', 'b'))",
    ),
    _cure(
        "a command or an insert inside a stream",
        r"Commands like CreateTable|InsertIntoDir is not supported",
        "write with a sink of a query",
    ),
    _cure(
        "grouping sets that Spark did not expand",
        r"Grouping Sets is not supported",
        "write a union of one aggregation per grouping set",
    ),
    _cure(
        "a watermark on a column that is not a top-level TIMESTAMP",
        r"EVENT_TIME_IS_NOT_ON_TIMESTAMP_TYPE|EVENT_TIME_MUST_BE_TOP_LEVEL_COLUMN",
        "declare the column as a top-level TIMESTAMP, or cast it in a view and set the watermark in Python",
    ),
    _cure(
        "`dropDuplicatesWithinWatermark` without a watermark",
        r"dropDuplicatesWithinWatermark is not supported on streaming",
        "set a watermark on the source",
    ),
    _cure(
        "`dropDuplicatesWithinWatermark` on a static table",
        r"dropDuplicatesWithinWatermark is not supported with batch",
        "use dropDuplicates there",
    ),
    _cure(
        "two streams with the same name, or a name that Spark does not accept",
        r"STREAMING_QUERY_EVOLUTION_ERROR",
        "give each stream a unique name of letters, digits and underscores",
    ),
    _cure(
        "the current time with a continuous trigger",
        r"Continuous processing does not support current time",
        "write a trigger such as '1 second'",
    ),
    _cure(
        "an operator other than map, filter and project with a continuous trigger",
        r"Continuous processing does not support|not supported with continuous trigger|Unknown type of trigger",
        "write a trigger such as '1 second'",
    ),
    _cure(
        "real-time mode in append or complete mode",
        r"STREAMING_REAL_TIME_MODE\.OUTPUT_MODE_NOT_SUPPORTED",
        "write a trigger such as '1 second'",
        has_other_mode=True,
    ),
    _cure(
        "a real-time trigger shorter than Spark accepts",
        r"INVALID_STREAMING_REAL_TIME_MODE_TRIGGER_INTERVAL",
        "write 5 seconds or more: it is the time between checkpoints, not the delay of a row",
    ),
    _cure(
        "an operator or a sink that real-time mode does not support",
        r"STREAMING_REAL_TIME_MODE",
        "write a trigger such as '1 second'",
    ),
    _cure(
        "a sink in an output mode that it does not support",
        r"UNSUPPORTED_DATASOURCE|DELTA_UNSUPPORTED_OUTPUT_MODE",
        "choose a sink that accepts updated rows",
        has_other_mode=True,
    ),
)


def find_hint(message: str, modes: Sequence[OutputMode] = ()) -> str:
    """Return the fix for an error message of Spark, which includes its error class, or "" if none is known.

    `modes` are output modes in which Spark accepts the same plan.
    """
    matching = next((hint for hint in CURES if hint.pattern.search(message)), None)
    if matching is None:
        return ""
    if not matching.has_other_mode or not modes:
        return matching.fix
    return f"{matching.fix}; or run the query in output mode {' or '.join(modes)}"
