"""The options of Spark's sources and sinks, by format."""

from __future__ import annotations

import re
from difflib import get_close_matches

_PATH = ("path",)
_FILE_SOURCE = (
    *_PATH, "maxFilesPerTrigger", "maxBytesPerTrigger", "latestFirst", "fileNameOnly", "maxFileAge", "maxCachedFiles",
    "discardCachedInputRatio", "cleanSource", "sourceArchiveDir", "pathGlobFilter", "recursiveFileLookup",
    "modifiedBefore", "modifiedAfter", "ignoreCorruptFiles", "ignoreMissingFiles", "mergeSchema", "basePath",
)  # fmt: skip
_TEXTS = ("encoding", "charset", "lineSep", "compression")
_PARSED = (
    "mode", "columnNameOfCorruptRecord", "dateFormat", "timestampFormat", "timestampNTZFormat",
    "enableDateTimeParsingFallback",
    "locale", "timeZone", "samplingRatio", "inferSchema", "prefersDecimal", "ignoreNullFields", "multiLine",
)  # fmt: skip

# Options of readers. A reader ignores every other option.
SOURCES: dict[str, tuple[str, ...]] = {
    "kafka": (
        "assign", "subscribe", "subscribePattern", "startingTimestamp", "startingOffsetsByTimestamp",
        "startingOffsets", "endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets", "failOnDataLoss",
        "kafkaConsumer.pollTimeoutMs",
        "fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "maxOffsetsPerTrigger", "minOffsetsPerTrigger",
        "maxTriggerDelay", "minPartitions", "maxRecordsPerPartition", "groupIdPrefix", "includeHeaders",
        "startingOffsetsByTimestampStrategy",
    ),
    "rate": ("rowsPerSecond", "rampUpTime", "numPartitions"),
    "rate-micro-batch": ("rowsPerBatch", "numPartitions", "startTimestamp", "advanceMillisPerBatch"),
    "socket": ("host", "port", "includeTimestamp", "numPartitions"),
    "text": (*_FILE_SOURCE, *_TEXTS, "wholetext"),
    "parquet": (*_FILE_SOURCE, "datetimeRebaseMode", "int96RebaseMode"),
    "orc": _FILE_SOURCE,
    "json": (
        *_FILE_SOURCE, *_TEXTS, *_PARSED, "primitivesAsString", "allowComments", "allowUnquotedFieldNames",
        "allowSingleQuotes", "allowNumericLeadingZeros", "allowBackslashEscapingAnyCharacter",
        "allowUnquotedControlChars", "allowNonNumericNumbers", "dropFieldIfAllNull",
    ),
    "csv": (
        *_FILE_SOURCE, *_TEXTS, *_PARSED, "sep", "delimiter", "header", "quote", "escape", "comment", "enforceSchema",
        "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace", "nullValue", "emptyValue", "nanValue", "positiveInf",
        "negativeInf", "maxColumns", "maxCharsPerColumn", "charToEscapeQuoteEscaping", "unescapedQuoteHandling",
        "escapeQuotes", "quoteAll",
    ),
    "delta": (
        *_PATH, "maxFilesPerTrigger", "maxBytesPerTrigger", "ignoreDeletes", "ignoreChanges", "skipChangeCommits",
        "startingVersion", "startingTimestamp", "readChangeFeed", "readChangeData", "endingVersion", "failOnDataLoss",
        "schemaTrackingLocation", "excludeRegex", "withEventTimeOrder", "allowSourceColumnRename",
        "allowSourceColumnDrop", "allowSourceColumnTypeChange", "versionAsOf", "timestampAsOf",
    ),
}  # fmt: skip

_WRITER = ("checkpointLocation", "asyncProgressTrackingEnabled", "asyncProgressTrackingCheckpointIntervalMs")
_FILE_SINK = (*_WRITER, *_PATH, "compression", "retention", "maxRecordsPerFile", "timeZone")

# Options of writers.
SINKS: dict[str, tuple[str, ...]] = {
    "kafka": (*_WRITER, "topic", "includeHeaders"),
    "console": (*_WRITER, "numRows", "truncate"),
    "parquet": _FILE_SINK,
    "json": (*_FILE_SINK, "dateFormat", "timestampFormat", "timestampNTZFormat", "ignoreNullFields", "encoding",
             "lineSep"),
    "csv": (*_FILE_SINK, "sep", "delimiter", "header", "quote", "escape", "quoteAll", "escapeQuotes", "nullValue",
            "emptyValue", "dateFormat", "timestampFormat", "timestampNTZFormat", "encoding", "lineSep"),
    "delta": (*_WRITER, *_PATH, "mergeSchema", "overwriteSchema", "txnAppId", "txnVersion", "userMetadata",
              "maxRecordsPerFile", "optimizeWrite", "autoCompact", "failOnDataLoss", "partitionOverwriteMode"),
}  # fmt: skip

# Settings of Kafka's own client, which Spark's source and sink take with `kafka.` before them.
_CLIENT = re.compile(
    r"(?:group|client)\.id|bootstrap\.servers|session\.timeout\.ms|request\.timeout\.ms|max\.poll\.records"
    r"|(?:security|sasl|ssl|fetch)\.[a-z.]+"
)
# Formats whose whole set of options is known. For others, only a name close to a known one is called misspelt.
_COMPLETE = ("kafka", "rate", "rate-micro-batch", "socket")


def find_unknown_option(key: str, known: tuple[str, ...], kind: str) -> str | None:
    """Return the nearest known option for one that its reader or writer ignores, "" if there is none near it.

    Return None for an option that is known, or that may be.
    """
    lower = {option.lower(): option for option in known}
    if kind == "kafka" and _CLIENT.fullmatch(key):
        return f"kafka.{key}"
    prefix, dot, name = key.partition(".")
    if kind == "cloudfiles" and dot and get_close_matches(prefix.lower(), ("cloudfiles",), cutoff=0.85):
        return None if prefix.lower() == "cloudfiles" else f"cloudFiles.{name}"
    if key.lower() in lower or "." in key.replace("kafkaConsumer.", "").replace("fetchOffset.", ""):
        return None
    near = get_close_matches(key.lower(), lower, n=1, cutoff=0.85)
    if near:
        return lower[near[0]]
    return "" if kind in _COMPLETE else None
