"""Read from a spec what rules about settings need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.job_settings import JobSettings, SparkSetting, UnlimitedSource
from millstream.diagnostics.finding import Edit
from millstream.diagnostics.lines import TextLines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.rule_context import Facts


def read_settings(facts: Facts) -> JobSettings:
    """Return the settings of a spec."""
    spark = (
        SparkSetting(
            key, str(value).lower() if isinstance(value, bool) else str(value), facts.places.key("spark", key)
        )
        for key, value in facts.pipeline.spark.items()
    )
    return JobSettings(tuple(spark), tuple(_find_unlimited(facts)))


def _find_unlimited(facts: Facts) -> Iterator[UnlimitedSource]:
    for name, entry in facts.pipeline.sources.items():
        limit = entry.source.batch_limit()
        if entry.static or limit is None:
            continue
        query = next(
            (candidate for candidate in facts.readers(name) if _has_storing_sink(facts, candidate)), None
        )
        if query is None:
            continue
        places, path = facts.places, ("sources", name, "source")
        cause = next((candidate for candidate in limit.causes if places.has(*path, candidate)), None)
        span = places.value(*path, cause) if cause else places.key(*path)
        setting = f"{limit.field}: {limit.value}"
        yield UnlimitedSource(
            name, limit.first_batch, setting, span, query, _build_edit(facts, name, setting)
        )


def _has_storing_sink(facts: Facts, query: str) -> bool:
    trigger = facts.pipeline.trigger(query)
    in_batches = trigger.flows is None and not trigger.once
    return in_batches and any(entry.sink.stores_rows for entry in facts.pipeline.queries[query].to)


def _build_edit(facts: Facts, source: str, setting: str) -> Edit | None:
    """Add the setting to the others, in their braces or on a separate line."""
    places = facts.places
    kind = facts.pipeline.sources[source].source.kind
    key, value = places.key("sources", source, kind), places.value("sources", source, kind)
    if places.document is None or not places.has("sources", source, kind):
        return None
    lines = TextLines(places.document.text)
    if value.line > key.line:
        indent = " " * (value.column - 1)
        return Edit(key.file, key.line, (f"{indent}{setting}",), is_safe=False)
    line = lines.line(value.line)
    position = value.end_column - 2
    if value.end_line != value.line or line[value.column - 1] != "{" or line[position : position + 1] != "}":
        return None
    return Edit(
        key.file, key.line - 1, (f"{line[:position].rstrip()}, {setting}{line[position:]}",), 1, is_safe=False
    )
