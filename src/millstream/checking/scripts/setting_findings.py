"""Check the settings of a script's sources, sinks and session by the rules that a spec is checked by."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pydantic import ValidationError

from millstream.analysis.folder_paths import normalize_path
from millstream.analysis.job_settings import JobSettings, SparkSetting, UnlimitedSource
from millstream.analysis.rule_runner import run_setting_rules
from millstream.checking.scripts.checkpoint_findings import build_rule_finding, find_checkpoint_problems
from millstream.checking.scripts.execution.spark_version import ANSI
from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.interception.absent import MARK
from millstream.checking.scripts.interception.placeholders import Unknown
from millstream.checking.scripts.interception.spark_formats import FILES, sink_guarantee
from millstream.checking.scripts.spark_options import SINKS, SOURCES, find_unknown_option
from millstream.connectors import registry, spark_formats
from millstream.diagnostics.finding import Severity
from millstream.spec.guarantee import Guarantee

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from millstream.checking.scripts.interception.recording import Recording, SourceRead, StartedQuery
    from millstream.diagnostics.finding import Finding, Span

_INFERENCE = "spark.sql.streaming.schemaInference"
_SKIPPING = {
    "ignorecorruptfiles": "files that cannot be read are skipped silently",
    "ignoremissingfiles": "files that are deleted before they are read are skipped silently",
    "failondataloss": "records that were deleted before the query read them are skipped silently",
}
# What a sink guarantees from which a skipped record is missing for good.
_ONCE = (Guarantee.EXACTLY_ONCE, Guarantee.EFFECTIVELY_ONCE)
# Options of a file source that exclude each other.
_LIMITS = frozenset({"maxfilespertrigger", "maxbytespertrigger"})
_SKIPPING_SETTINGS = {
    "spark.sql.files.ignoreCorruptFiles": "ignorecorruptfiles",
    "spark.sql.files.ignoreMissingFiles": "ignoremissingfiles",
}


def find_setting_problems(
    recording: Recording, readers: Mapping[str, Sequence[StartedQuery]]
) -> Iterator[Finding]:
    """Yield findings about options of sources and sinks, checkpoints, and settings of the session.

    `readers` are the queries that read each stream.
    """
    are_known = bool(recording.queries) and not any(isinstance(q.frame, Unknown) for q in recording.queries)
    for source in recording.sources.values():
        queries = readers.get(source.name, ())
        if source.is_streaming:
            yield from _source_findings(source, recording)
        # No records are missing from a stream that no query reads.
        if source.is_streaming and (queries or not are_known):
            yield from _find_skipped_records(source, queries)
    for query in recording.queries:
        yield from _sink_findings(query)
        yield from _find_missing_partitions(query, recording)
    yield from find_checkpoint_problems(recording)
    yield from run_setting_rules(read_settings(recording, readers))
    for key, option in _SKIPPING_SETTINGS.items():
        if recording.conf.get(key, "").lower() == "true":
            yield build_rule_finding(
                "MS504", f"'{key}': {_SKIPPING[option]}", recording.conf_spans.get(key), fix="remove it"
            )


def read_settings(recording: Recording, readers: Mapping[str, Sequence[StartedQuery]]) -> JobSettings:
    """Return the settings of a script, for the rules that read those of a spec too."""
    spark = (
        SparkSetting(key, value, _span_of_key(key, recording.conf_spans.get(key)))
        for key, value in recording.conf.items()
        if MARK not in value
    )
    return JobSettings(tuple(spark), tuple(_find_unlimited(recording, readers)))


def _span_of_key(key: str, call: Span | None) -> Span | None:
    """Return the span of a setting's name: a builder sets it only in the call that makes the session."""
    return None if call is None else call_sites.span_within(call_sites.SqlText(call, key), 0, len(key))


def _find_unlimited(
    recording: Recording, readers: Mapping[str, Sequence[StartedQuery]]
) -> Iterator[UnlimitedSource]:
    for source in recording.sources.values():
        query = next((query for query in readers.get(source.name, ()) if _stores_batches(query)), None)
        kind = registry.sources().get(source.format)
        if query is None or kind is None or not source.is_streaming:
            continue
        # `kafka.bootstrap.servers` and `startingOffsets` are bootstrap_servers and starting_offsets in a spec.
        options = {option.lower(): option for option in SOURCES.get(source.format, ())}
        fields = {
            _as_field(options.get(key.lower(), key).removeprefix(f"{source.format}.")): key
            for key in source.options
        }
        settings = {field: source.options[key] for field, key in fields.items() if field in kind.model_fields}
        try:
            limit = kind.model_validate(settings).batch_limit()
        except ValidationError:
            # A value is not known, or has a form that a spec does not accept.
            continue
        # What the script leaves out has another default in a spec.
        if limit is not None and set(limit.causes) <= set(settings):
            option = next(name for name in SOURCES[source.format] if _as_field(name) == limit.field)
            cause = next((fields[cause] for cause in limit.causes), "")
            yield UnlimitedSource(
                source.name,
                limit.first_batch,
                f".option('{option}', {limit.value})",
                source.option_spans.get(cause, source.span),
                query.name,
            )


def _stores_batches(query: StartedQuery) -> bool:
    in_batches = query.trigger.flows is None and not query.trigger.once
    return in_batches and query.format not in spark_formats.STORE_NOTHING


def _as_field(option: str) -> str:
    """Return the name that a setting of a spec has for an option of Spark."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", option).replace(".", "_").lower()


def _find_skipped_records(source: SourceRead, readers: Sequence[StartedQuery]) -> Iterator[Finding]:
    exact = next((query for query in readers if sink_guarantee(query.format)[0] in _ONCE), None)
    for key, value in source.options.items():
        skips = "false" if key.lower() == "failondataloss" else "true"
        if key.lower() in _SKIPPING and value.lower() == skips:
            yield build_rule_finding(
                "MS504",
                f"source '{source.name}': {_SKIPPING[key.lower()]}",
                source.option_spans.get(key, source.span),
                severity=Severity.ERROR if exact else Severity.WARNING,
                why="nothing else reports that they are missing",
                fix=f"remove the option '{key}'; the query then stops, and the error message names what is missing",
                query=exact.name if exact else None,
            )


def _source_findings(source: SourceRead, recording: Recording) -> Iterator[Finding]:
    for key, value in source.options.items():
        span = source.option_spans.get(key, source.span)
        near = find_unknown_option(key, SOURCES.get(source.format, (key,)), source.format)
        if near is not None and not key.startswith("kafka."):
            yield build_rule_finding(
                "MS501",
                f"Spark's {source.format} source does not know the option '{key}', and ignores it",
                span,
                fix=f"write '{near}'" if near else "remove it",
            )
        if source.format == "kafka" and key.lower() == "startingoffsets" and not _is_offsets(value):
            yield build_rule_finding(
                "MS501",
                f"source '{source.name}': startingOffsets cannot be '{value}'",
                span,
                severity=Severity.ERROR,
                why="Spark fails when it starts the query",
                fix="use earliest, latest, or offsets by topic and partition in JSON",
            )
        if key == "kafka.bootstrap.servers" and not value.strip():
            unset = list(dict.fromkeys(recording.empty_variables))
            yield build_rule_finding(
                "MS501",
                f"source '{source.name}': kafka.bootstrap.servers is empty",
                span,
                severity=Severity.INFO if unset else Severity.ERROR,
                why=f"environment variables that are not set here are empty then: {', '.join(unset)}"
                if unset
                else "Spark fails when it starts the query",
                fix="set it to the brokers, as host:port with commas between them",
            )
    limits = [key for key in source.options if key.lower() in _LIMITS]
    if source.format in FILES - {"cloudfiles"} and len(limits) > 1 and recording.conf.get(ANSI) != "false":
        yield build_rule_finding(
            "MS501",
            f"source '{source.name}' has both '{limits[0]}' and '{limits[1]}'",
            source.option_spans.get(limits[1], source.span),
            severity=Severity.ERROR,
            why="Spark 4 refuses to start a query whose file source has both options",
            fix="keep only one of them",
        )
    infers = recording.conf.get(_INFERENCE, "").lower() == "true"
    if infers and source.format in FILES - {"text", "binaryfile"} and not source.has_schema:
        yield build_rule_finding(
            "MS511",
            f"the columns of source '{source.name}' are inferred from the files it finds",
            source.span,
            why="they are inferred again at each start, so a new file may lead to columns that do not match the "
            "state in the checkpoint",
            fix="give the reader its columns with .schema(…)",
        )


def find_own_output(query: StartedQuery, streams: Iterable[SourceRead]) -> Iterator[Finding]:
    """Yield findings about a query that writes its rows or its checkpoint to the place that it reads."""
    rows = _place(query.format, {"path": query.target, **query.options})
    checkpoint = _place("", {"path": query.checkpoint})
    for source in streams:
        place = _place(source.format, source.options)
        if place and place in (rows, checkpoint):
            what = "its own rows" if place == rows else "the files of its own checkpoint"
            yield build_rule_finding(
                "MS512",
                f"query '{query.name}' reads {what}: {place}",
                query.span,
                severity=Severity.ERROR,
                why="each batch writes what a later batch reads again",
                fix="use a place that the query does not read",
                query=query.name,
            )


def _place(format_name: str, options: Mapping[str, str]) -> str:
    """Return the folder, table or topic that a source or a sink has; "" if it is not a single, known one."""
    if format_name == spark_formats.KAFKA:
        topic = options.get("subscribe", options.get("topic", ""))
        place = f"{topic} of {options.get('kafka.bootstrap.servers', '')}" if topic else ""
        return "" if "," in topic or MARK in place else place
    path = options.get("path", "")
    is_pattern = any(character in path for character in "*?[{")
    return "" if not path or is_pattern or MARK in path else normalize_path(path)


def _is_offsets(value: str) -> bool:
    return (
        value.strip().lower() in ("earliest", "latest")
        or MARK in value
        or bool(re.fullmatch(r"\s*\{.*\}\s*", value, re.DOTALL))
    )


def _sink_findings(query: StartedQuery) -> Iterator[Finding]:
    for key in query.options:
        near = find_unknown_option(key, SINKS.get(query.format, (key,)), query.format)
        if near and not key.startswith("kafka."):
            yield build_rule_finding(
                "MS302",
                f"query '{query.name}': the {query.format} sink does not know the option '{key}', and ignores it",
                query.option_spans.get(key, query.span),
                fix=f"write '{near}'",
                query=query.name,
            )
    if query.trigger.once:
        yield build_rule_finding(
            "MS303",
            f"query '{query.name}' has the trigger 'once'",
            query.trigger_span or query.span,
            why="this trigger reads everything in one batch and ignores the batch limits of the sources, and "
            "Spark has deprecated it",
            fix="write .trigger(availableNow=True), which Spark has since 3.3",
            query=query.name,
        )


def _find_missing_partitions(query: StartedQuery, recording: Recording) -> Iterator[Finding]:
    """Yield the refusal of a sink that is partitioned by a column which the query does not have."""
    is_partitioned = query.format in (*spark_formats.WRITABLE_FILES, spark_formats.DELTA)
    if query.columns is None or recording.decoded or not is_partitioned:
        return
    columns = [name.lower() for name in query.columns.names]
    for name in query.partitioned:
        if name.strip("`").lower() not in columns and MARK not in name:
            yield build_rule_finding(
                "MS305",
                f"query '{query.name}' is partitioned by '{name}', which is none of its columns",
                query.span,
                severity=Severity.ERROR,
                why=f"Spark fails when it starts the query; its columns are {', '.join(query.columns.names)}",
                fix="partition by one of these columns, or add the column before writeStream",
                query=query.name,
            )
