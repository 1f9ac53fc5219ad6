"""Check the settings of a script's sources, sinks and session by the rules that a spec is checked by."""

from __future__ import annotations

import posixpath
import re
from itertools import combinations
from typing import TYPE_CHECKING

from millstream.analysis.rule_runner import load_rules
from millstream.checking.scripts.interception.absent import MARK
from millstream.checking.scripts.interception.spark_formats import FILES
from millstream.checking.scripts.spark_options import SINKS, SOURCES, find_unknown_option
from millstream.diagnostics.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.checking.scripts.interception.recording import Recording, SourceRead, StartedQuery
    from millstream.diagnostics.finding import Span

_INFERENCE = "spark.sql.streaming.schemaInference"
_EMPTIED = {
    "/tmp": "files in /tmp are deleted at a restart of the machine, or after some days",  # noqa: S108 - what is warned of
    "/private/tmp": "files in /tmp are deleted at a restart of the machine, or after some days",
    "/dev/shm": "/dev/shm is in memory: its files are lost when the machine stops",  # noqa: S108 - what is warned of
}
_SKIPPING = {
    "ignorecorruptfiles": "files that cannot be read are skipped silently",
    "ignoremissingfiles": "files that are deleted before they are read are skipped silently",
    "failondataloss": "records that were deleted before they were read are skipped silently",
}
_SKIPPING_SETTINGS = {
    "spark.sql.files.ignoreCorruptFiles": "ignorecorruptfiles",
    "spark.sql.files.ignoreMissingFiles": "ignoremissingfiles",
}


def find_setting_problems(recording: Recording) -> Iterator[Finding]:
    """Yield findings about options of sources and sinks, checkpoints, and settings of the session."""
    for source in recording.sources.values():
        if source.is_streaming:
            yield from _source_findings(source, recording)
    for query in recording.queries:
        yield from _sink_findings(query)
        yield from _temporary_checkpoint(query)
    yield from _nested_checkpoints(recording)
    for key, option in _SKIPPING_SETTINGS.items():
        if recording.conf.get(key, "").lower() == "true":
            yield _build(
                "MS504", f"'{key}': {_SKIPPING[option]}", recording.conf_spans.get(key), fix="remove it"
            )


def _source_findings(source: SourceRead, recording: Recording) -> Iterator[Finding]:
    for key, value in source.options.items():
        span = source.option_spans.get(key, source.span)
        near = find_unknown_option(key, SOURCES.get(source.format, (key,)), source.format)
        if near is not None and not key.startswith("kafka."):
            yield _build(
                "MS501",
                f"Spark's {source.format} source does not know the option '{key}', and ignores it",
                span,
                fix=f"write '{near}'" if near else "remove it",
            )
        skips = "false" if key.lower() == "failondataloss" else "true"
        if key.lower() in _SKIPPING and value.lower() == skips:
            yield _build(
                "MS504",
                f"source '{source.name}': {_SKIPPING[key.lower()]}",
                span,
                why="nothing else reports them",
                fix=f"remove the option '{key}': the query then stops and names what is missing",
            )
        if source.format == "kafka" and key.lower() == "startingoffsets" and not _is_offsets(value):
            yield _build(
                "MS501",
                f"source '{source.name}': startingOffsets cannot be '{value}'",
                span,
                severity=Severity.ERROR,
                why="Spark fails when it starts the query",
                fix="use earliest, latest, or offsets by topic and partition in JSON",
            )
    infers = recording.conf.get(_INFERENCE, "").lower() == "true"
    if infers and source.format in FILES - {"text", "binaryfile"} and not source.has_schema:
        yield _build(
            "MS511",
            f"the columns of source '{source.name}' are inferred from the files it finds",
            source.span,
            why="they are inferred at each start, so another file may give other columns that do not match the state",
            fix="give the reader its columns with .schema(…)",
        )


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
            yield _build(
                "MS302",
                f"query '{query.name}': the {query.format} sink does not know the option '{key}', and ignores it",
                query.option_spans.get(key, query.span),
                fix=f"write '{near}'",
                query=query.name,
            )


def _temporary_checkpoint(query: StartedQuery) -> Iterator[Finding]:
    folder = _normalize(query.checkpoint)
    reason = next((text for root, text in _EMPTIED.items() if f"{folder}/".startswith(f"{root}/")), None)
    if reason is not None:
        yield _build(
            "MS403",
            f"the checkpoint of '{query.name}' is in {'/'.join(folder.split('/')[:3])}",
            query.option_spans.get("checkpointLocation", query.span),
            why=f"{reason}; the query then starts from the beginning and writes its rows again",
            fix="use a persistent folder",
            query=query.name,
        )


def _nested_checkpoints(recording: Recording) -> Iterator[Finding]:
    folders = [
        (query, _normalize(query.checkpoint))
        for query in recording.queries
        if query.checkpoint and MARK not in query.checkpoint
    ]
    for (first, outer), (other, inner) in combinations(folders, 2):
        if _is_inside(inner, outer) or _is_inside(outer, inner):
            yield _build(
                "MS401",
                f"one of the checkpoints of '{first.name}' and '{other.name}' is inside the other",
                other.option_spans.get("checkpointLocation", other.span),
                severity=Severity.ERROR,
                why="each would continue at the other's offsets, and rows would be lost silently",
                fix="give each query a separate folder",
                query=other.name,
            )


def _normalize(path: str) -> str:
    """Return a path without `file:`, double slashes and dots."""
    if "://" in path and not path.startswith("file:"):
        return path.rstrip("/")
    return posixpath.normpath("/" + path.removeprefix("file:").lstrip("/") if path[:5] == "file:" else path)


def _is_inside(inner: str, outer: str) -> bool:
    return inner.startswith(outer.rstrip("/") + "/")


def _build(
    code: str,
    message: str,
    span: Span | None,
    *,
    severity: Severity = Severity.WARNING,
    why: str = "",
    fix: str = "",
    query: str | None = None,
) -> Finding:
    return Finding(code, load_rules()[code].name, severity, message, span, why=why, fix=fix, query=query)
