"""Spark's formats: which connect only when a query starts, what columns they have, what a sink of each keeps."""

from __future__ import annotations

from millstream.spec.guarantee import Guarantee

# Sources whose `load()` asks nobody: they connect when their query starts.
UNCONNECTED = frozenset({"kafka", "rate", "rate-micro-batch", "socket"})

# Formats of files that Spark reads by itself.
FILES = frozenset({"json", "csv", "parquet", "orc", "text", "xml", "binaryfile", "avro", "cloudfiles"})

# Of these an empty folder can be read in the format itself, options and all.
EMPTY_AS_ITSELF = frozenset({"json", "csv", "parquet", "orc", "text", "xml", "binaryfile"})

# Files whose columns are the same whatever is in them.
FIXED = frozenset({"text", "binaryfile"})

# Columns by format, where they are always the same.
KNOWN = {
    "kafka": "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp,"
    " timestampType int",
    "eventhubs": "body binary, partition string, offset string, sequenceNumber bigint, enqueuedTime timestamp,"
    " publisher string, partitionKey string, properties map<string,string>,"
    " systemProperties map<string,string>",
    "kinesis": "partitionKey string, data binary, stream string, shardId string, sequenceNumber string,"
    " approximateArrivalTimestamp timestamp",
}

# Sources that cannot give a batch a second time.
NOT_REPLAYABLE = frozenset({"socket"})

# Sinks that may be started without a checkpoint: Spark makes one for that run alone and removes it.
OWN_CHECKPOINT = frozenset({"memory", "console", "noop", "foreach", "foreachbatch"})

_SINKS: dict[str, tuple[Guarantee, str]] = {
    "kafka": (Guarantee.AT_LEAST_ONCE, "Kafka keeps no mark of a batch: one that is repeated is sent again"),
    "delta": (Guarantee.EXACTLY_ONCE, "Delta commits the batch's number with its rows and skips one it has"),
    "iceberg": (Guarantee.EXACTLY_ONCE, "Iceberg keeps the batch's number in the snapshot and skips one it has"),
    "console": (Guarantee.AT_LEAST_ONCE, "a batch that is repeated is printed again"),
    "memory": (Guarantee.AT_MOST_ONCE, "rows are gone with the process"),
    "noop": (Guarantee.AT_MOST_ONCE, "rows are thrown away"),
    "foreach": (Guarantee.AT_LEAST_ONCE, "the function sees the rows of a repeated batch again"),
    "foreachbatch": (Guarantee.AT_LEAST_ONCE, "the function sees a repeated batch again, with the same batch id"),
}  # fmt: skip
_FILE_SINK = (
    Guarantee.EXACTLY_ONCE,
    "the folder's log names each batch's files; only readers that follow the log, as Spark does, skip the rest",
)


def short(name: str) -> str:
    """A format by its short name in lower case: a provider's class is known by the word before `Source`."""
    low = name.lower()
    last = low.rpartition(".")[2]
    if "." not in low:
        return {"ratepermicrobatch": "rate-micro-batch"}.get(low, low)
    return next((one for one in (*UNCONNECTED, *FILES, "delta", "jdbc") if one in last), low)


def sink_keeps(name: str) -> tuple[Guarantee, str]:
    """What a streaming sink of a format keeps, given a source that can be read again, and why."""
    if name in FILES:
        return _FILE_SINK
    unknown = (
        Guarantee.AT_LEAST_ONCE,
        f"nothing is known here of a sink '{name}', so a batch may be written twice",
    )
    return _SINKS.get(name.lower(), unknown)
