"""A sink that may repeat rows is listed before one that does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts
from millstream.diagnostics.finding import Edit
from millstream.spec.guarantee import Guarantee

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
_ONCE = (Guarantee.EXACTLY_ONCE, Guarantee.EFFECTIVELY_ONCE)


def check(facts: Facts) -> Iterator[Finding]:
    """Check the order of each query's sinks; a sink that only shows rows may be anywhere."""
    for name, query in facts.pipeline.queries.items():
        writes_once = [entry.sink.guarantee(query.output_mode)[0] in _ONCE for entry in query.to]
        last = max((position for position, is_once in enumerate(writes_once) if is_once), default=0)
        early_positions = [
            position
            for position in range(last)
            if not writes_once[position] and query.to[position].sink.stores_rows
        ]
        for position in early_positions[:1]:
            first, other = query.to[position].sink, query.to[last].sink
            yield CODE.warning(
                f"{first.kind} is written before {other.kind}, so it gets the rows of a batch again if "
                f"{other.kind} refuses the batch",
                facts.places.key("queries", name, "to", position, "sink"),
                why=f"sinks are written in order, and a batch that fails at one sink is repeated for all; "
                f"{other.kind} skips a batch that it already has, {first.kind} does not",
                fix=f"write {first.kind} last",
                edit=_build_edit(
                    facts,
                    name,
                    [*(n for n in range(len(writes_once)) if n not in early_positions), *early_positions],
                ),
                query=name,
            )


def _build_edit(facts: Facts, query: str, order: Sequence[int]) -> Edit | None:
    """Reorder the entries of `to`, if each begins on its own line."""
    if not all(facts.places.has("queries", query, "to", number) for number in range(len(order))):
        return None
    spans = [facts.places.value("queries", query, "to", number) for number in range(len(order))]
    lines = facts.places.texts.get(spans[0].file, "").splitlines()
    starts = [span.line for span in spans]
    if any(
        lines[line - 1][: span.column - 1].strip() != "-" for line, span in zip(starts, spans, strict=True)
    ):
        return None
    end = spans[-1].end_line - (1 if spans[-1].end_column == 1 else 0)
    # Comments and blank lines after the last entry belong to the next section.
    while end > starts[-1] and lines[end - 1].strip()[:1] in ("", "#"):
        end -= 1
    ends = [*(start - 1 for start in starts[1:]), end]
    items = [lines[start - 1 : stop] for start, stop in zip(starts, ends, strict=True)]
    reordered = tuple(line for number in order for line in items[number])
    return Edit(spans[0].file, starts[0] - 1, reordered, len(reordered), is_safe=True)
