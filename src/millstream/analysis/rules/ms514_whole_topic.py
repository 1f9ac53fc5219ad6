"""A source has no batch limit, so that the first batch contains the whole topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts
from millstream.diagnostics.finding import Edit
from millstream.diagnostics.lines import TextLines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Check streams that a micro-batch query reads into a sink that stores rows.

    A query into the console is a trial. The trigger `once` reads everything in one batch, whatever the limit, and
    the triggers without batches ignore it.
    """
    for name, entry in facts.pipeline.sources.items():
        limit = entry.source.batch_limit()
        if entry.static or limit is None:
            continue
        query = next(
            (candidate for candidate in facts.readers(name) if _has_storing_sink(facts, candidate)), None
        )
        if query is None:
            continue
        path = ("sources", name, "source")
        setting = next((candidate for candidate in limit.causes if facts.places.has(*path, candidate)), None)
        places = facts.places
        yield CODE.warning(
            f"source '{name}': the first batch contains {limit.first_batch}",
            places.value(*path, setting) if setting else places.key(*path),
            why="this batch may take hours or too much memory, and after a crash it starts from the beginning, "
            "because it is committed only at its end; the same happens with the records that arrive "
            "during a long stop",
            fix=f"limit the batch size, for example with {limit.field}: {limit.value}",
            edit=_build_edit(facts, name, f"{limit.field}: {limit.value}"),
            query=query,
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
