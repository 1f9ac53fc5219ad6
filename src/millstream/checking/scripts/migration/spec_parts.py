"""The sources and sinks of a script in the words of a spec."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from millstream.checking.scripts.interception.absent import MARK
from millstream.checking.scripts.migration.code_slice import NotMovable
from millstream.connectors import spark_formats
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.checking.scripts.interception.recording import SourceRead, StartedQuery
    from millstream.checking.scripts.migration.merge_function import MergeFunction

_FILES = ("json", "csv", "parquet", "orc", "text")
# Databricks' source of files.
_AUTO_LOADER = "cloudfiles"
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# Options whose fields in a spec have the same name in snake_case.
_SOURCE_FIELDS: dict[str, tuple[str, ...]] = {
    "kafka": (
        "subscribe", "subscribePattern", "startingOffsets", "maxOffsetsPerTrigger", "minOffsetsPerTrigger",
        "maxTriggerDelay", "minPartitions", "failOnDataLoss", "groupIdPrefix", "includeHeaders",
    ),
    "files": (
        "maxFilesPerTrigger", "latestFirst", "fileNameOnly", "maxFileAge", "recursiveFileLookup", "pathGlobFilter",
    ),
    "rate": ("rowsPerSecond", "rampUpTime", "numPartitions"),
    "socket": ("host", "port", "includeTimestamp"),
    "delta": ("maxFilesPerTrigger", "startingVersion"),
}  # fmt: skip
_UNKNOWN_INTERVAL = "1 minute"
_CREDENTIALS = re.compile(r"secret|passw|token|jaas|credential|private", re.IGNORECASE)


def build_source(source: SourceRead, columns: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Return a source's entry in a spec, and what differs from the script. Raises NotMovable.

    `columns` are its columns and their types, if they are known.
    """
    notes: list[str] = []
    kind, options = source.format, dict(source.options)
    if kind == _AUTO_LOADER:
        kind = options.pop("cloudFiles.format", "")
        if kind not in _FILES:
            raise NotMovable("the format of its files is not one that the project reads (cloudFiles.format)")
        notes.append("Auto Loader became a source of files, which lists its folder for each batch")
        notes += [f"the option '{key}' is left out" for key in options if key.startswith("cloudFiles.")]
        options = {key: value for key, value in options.items() if not key.startswith("cloudFiles.")}
    family = "files" if kind in _FILES else kind
    if family not in _SOURCE_FIELDS:
        raise NotMovable(f"there is no source kind for {source.format}")
    settings: dict[str, Any] = {}
    fields = {name.lower(): name for name in _SOURCE_FIELDS[family]}
    for key, value in options.items():
        if key.lower() in fields:
            settings[_snake(fields[key.lower()])] = _typed(value)
        elif key == "kafka.bootstrap.servers":
            settings["bootstrap_servers"] = _text(value, "KAFKA")
        elif key.lower() == "path":
            settings["path"] = _text(value, "PATH")
        elif _CREDENTIALS.search(key):
            notes.append(f"the option '{key}' holds a secret: set it with security, and a variable")
        else:
            settings.setdefault("options", {})[key] = value
    entry: dict[str, Any] = {kind: settings}
    if kind == "kafka":
        settings.setdefault("starting_offsets", "latest" if source.is_streaming else "earliest")
        entry |= {"format": "raw", "keep": ["key", "topic", "partition", "offset", "timestamp"]}
    elif family == "files" and kind != "text" and columns:
        entry["schema"] = dict(columns)
    if kind in ("json", "csv"):
        notes.append(
            "a malformed row ends the query (on_malformed: fail); in the script its columns became NULL"
        )
    if not source.is_streaming:
        entry["static"] = True
    return entry, notes


def build_sink(query: StartedQuery) -> tuple[dict[str, Any], list[str]]:
    """Return a query's sink in a spec, and what differs from the script. Raises NotMovable."""
    kind, notes = query.format, []
    options = {
        key: value
        for key, value in query.options.items()
        if key.lower() not in ("path", "checkpointlocation")
    }
    settings: dict[str, Any] = {}
    if kind in _FILES or kind == "delta":
        is_table = kind == "delta" and "/" not in query.target
        if not query.target or (kind != "delta" and "/" not in query.target and "." in query.target):
            raise NotMovable(f"it writes the table '{query.target}' of a catalog as {kind}")
        settings["table" if is_table else "path"] = _text(query.target, "PATH")
        if query.partitioned:
            settings["partition_by"] = list(query.partitioned)
    elif kind == "kafka":
        settings["bootstrap_servers"] = _text(options.pop("kafka.bootstrap.servers", ""), "KAFKA")
        # Names of columns that the sink of Spark reads, whatever their case is.
        columns = {name.lower(): name for name in (query.columns.names if query.columns else ())}
        topic = options.pop("topic", "")
        if not topic and "topic" in columns:
            settings["topic_column"] = columns["topic"]
        else:
            settings["topic"] = _text(topic, "TOPIC")
        settings["format"] = "raw"
        settings |= {"key": columns["key"]} if "key" in columns else {}
        notes += [
            f"the column '{columns[name]}' of the records is left out"
            for name in ("headers", "partition")
            if name in columns
        ]
    elif kind == "memory":
        settings["table"] = re.sub(r"\W+", "_", query.name)
    elif kind != "console":
        raise NotMovable(f"there is no sink kind for {kind}")
    notes += [f"the option '{key}' of the sink is left out" for key in options]
    return {kind: settings}, notes


def build_trigger(query: StartedQuery) -> tuple[Any, list[str]]:
    """Return a query's trigger as a spec writes it, None for the default, and what differs from the script."""
    settings = query.trigger.model_dump(exclude_none=True, exclude_defaults=True, mode="json")
    if "once" in settings:
        return "available_now", [
            "the trigger once became available_now: batches within the limits of the sources, not one of all rows"
        ]
    if not settings or "available_now" in settings:
        return "available_now" if settings else None, []
    ((kind, interval),) = settings.items()
    notes = []
    if not query.is_interval_known:
        interval = f"${{TRIGGER:-{_UNKNOWN_INTERVAL}}}"
        notes = [
            f"the interval of the trigger is not known: it is {_UNKNOWN_INTERVAL} unless the variable TRIGGER is set"
        ]
    return interval if kind == "processing_time" else {kind: interval}, notes


def _snake(name: str) -> str:
    return _HUMP.sub("_", name).lower()


def _typed(value: str) -> Any:
    if value in ("true", "false"):
        return value == "true"
    return int(value) if value.isdigit() else value


def _text(value: str, variable: str) -> str:
    """Return a value, or a variable with a default that stands out, if the script's is not known."""
    return f"${{{variable}:-set-{variable.lower()}}}" if not value or MARK in value else value


def build_merge(merge: MergeFunction, function: str, mode: str) -> tuple[dict[str, Any], list[str]] | None:
    """Return the Delta sink for a foreachBatch function that merges, and what it does in another way.

    None if no sink does the same in this output mode.
    """
    settings: dict[str, Any] = dict([merge.place])
    about_null = [
        f"two NULLs in a key count as equal, so such a row replaces an earlier one; {function}() inserted each"
    ]
    if merge.deletes:
        about_null.append(
            f"a row for which {merge.deletes} is NULL is inserted if the table lacks its key; "
            f"{function}() did not insert it"
        )
    if not merge.sequence:
        settings["merge_on"] = list(merge.keys)
        settings |= {"delete_when": merge.deletes} if merge.deletes else {}
        return {spark_formats.DELTA: settings}, [
            f"{function}() became merge_on of a Delta sink",
            f"two rows with the same key in one batch stop the query; {function}() inserted both if the key was new",
            *about_null,
        ]
    if mode != OutputMode.APPEND:
        return None
    cdc: dict[str, Any] = {"keys": list(merge.keys), "sequence_by": merge.sequence}
    cdc |= {"apply_as_deletes": merge.deletes} if merge.deletes else {}
    notes = [f"{function}() became cdc of a Delta sink: the newest row of each key by {merge.sequence}"]
    if not merge.is_guarded:
        notes.append(
            f"{function}() let a row replace a newer one of an earlier batch; the newest by {merge.sequence} stays"
        )
    if merge.deletes:
        notes.append("a deleted key is kept next to the table, so that an older row does not bring it back")
    notes += about_null
    return {spark_formats.DELTA: {**settings, "cdc": cdc}}, notes


def describe_options(options: Mapping[str, str]) -> str:
    """Return options as one line, without values that may be secret."""
    return ", ".join(f"{key}={'…' if _CREDENTIALS.search(key) else value}" for key, value in options.items())
