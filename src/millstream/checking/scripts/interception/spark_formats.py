"""Facts about Spark's formats: when they connect, which columns they have, and the guarantees of their sinks."""

from __future__ import annotations

from millstream.connectors import spark_formats
from millstream.spec.guarantee import Guarantee

# Sources whose `load()` does not connect. They connect when their query starts.
UNCONNECTED = frozenset({"kafka", "rate", "rate-micro-batch", "socket"})

# File formats that Spark reads itself.
FILES = spark_formats.FILES | {"cloudfiles"}

# File formats in which Spark can read an empty folder, with all options.
EMPTY_AS_ITSELF = spark_formats.FILES - {"avro"}

# File formats with the same columns for every file.
FIXED = frozenset({"text", "binaryfile"})

# Columns of formats that always have the same ones.
KNOWN = {
    "kafka": "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp,"
    " timestampType int",
    "eventhubs": "body binary, partition string, offset string, sequenceNumber bigint, enqueuedTime timestamp,"
    " publisher string, partitionKey string, properties map<string,string>,"
    " systemProperties map<string,string>",
    "kinesis": "partitionKey string, data binary, stream string, shardId string, sequenceNumber string,"
    " approximateArrivalTimestamp timestamp",
}

# Sources that cannot replay a batch.
NOT_REPLAYABLE = frozenset({"socket"})

# Sinks that may start without a checkpoint. Spark creates a temporary one for the run and deletes it.
OWN_CHECKPOINT = frozenset({"memory", "console", "noop", "foreach", "foreachbatch"})

# Sinks that accept columns of any name and type. CSV refuses nested ones, which is not known of unknown columns.
NEEDS_NO_COLUMNS = frozenset(
    {
        "console",
        "csv",
        "delta",
        "es",
        "foreachbatch",
        "foreach",
        "iceberg",
        "json",
        "memory",
        "mongodb",
        "noop",
        "orc",
        "org.elasticsearch.spark.sql",
        "parquet",
    }
)

_SINKS: dict[str, tuple[Guarantee, str]] = {
    "kafka": (Guarantee.AT_LEAST_ONCE, "Kafka does not record batch ids: a repeated batch is sent again"),
    "delta": (Guarantee.EXACTLY_ONCE, "Delta commits the batch id with the rows and skips a repeated batch"),
    "iceberg": (Guarantee.EXACTLY_ONCE, "Iceberg stores the batch id in the snapshot and skips a repeated batch"),
    "console": (Guarantee.AT_LEAST_ONCE, "a repeated batch is printed again"),
    "memory": (Guarantee.AT_MOST_ONCE, "rows are lost when the process ends"),
    "noop": (Guarantee.AT_MOST_ONCE, "rows are discarded"),
    "foreach": (Guarantee.AT_LEAST_ONCE, "the function receives the rows of a repeated batch again"),
    "foreachbatch": (Guarantee.AT_LEAST_ONCE, "the function receives a repeated batch again, with the same id"),
}  # fmt: skip
_FILE_SINK = (
    Guarantee.EXACTLY_ONCE,
    "the folder's log lists each batch's files; only readers that follow the log, as Spark does, ignore other files",
)


def short_name(name: str) -> str:
    """Return a format's short name in lower case. The name of a provider's class contains the short name."""
    lower_name = name.lower()
    class_name = lower_name.rpartition(".")[2]
    if "." not in lower_name:
        return {"ratepermicrobatch": "rate-micro-batch"}.get(lower_name, lower_name)
    return next(
        (
            candidate
            for candidate in (*UNCONNECTED, *FILES, spark_formats.DELTA, "jdbc")
            if candidate in class_name
        ),
        lower_name,
    )


def sink_guarantee(name: str) -> tuple[Guarantee, str]:
    """Return the guarantee of a format's streaming sink, if its source can be replayed, and the reason."""
    if name in FILES:
        return _FILE_SINK
    unknown = (
        Guarantee.AT_LEAST_ONCE,
        f"the guarantees of sink '{name}' are not known, so a batch may be written twice",
    )
    return _SINKS.get(name.lower(), unknown)
