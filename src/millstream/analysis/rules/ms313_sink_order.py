"""A sink that repeats rows stands before one that does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts
from millstream.diagnostics.finding import Edit
from millstream.spec.guarantee import Guarantee

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
_ONCE = (Guarantee.EXACTLY_ONCE, Guarantee.EFFECTIVELY_ONCE)


def check(facts: Facts) -> Iterator[Finding]:
    """The sinks of each query in their order; one that only shows rows may stand anywhere."""
    for name, query in facts.pipeline.queries.items():
        once = [entry.sink.guarantee(query.output_mode)[0] in _ONCE for entry in query.to]
        last = max((at for at, sure in enumerate(once) if sure), default=0)
        early = [at for at in range(last) if not once[at] and query.to[at].sink.keeps]
        for at in early[:1]:
            first, other = query.to[at].sink, query.to[last].sink
            yield CODE.warning(
                f"{first.kind} is written before {other.kind}, and repeats a batch that {other.kind} refuses",
                facts.places.key("queries", name, "to", at, "sink"),
                why=f"sinks are written in their order, and a batch that failed at one comes again; {other.kind} "
                f"knows the batches that it has, {first.kind} does not",
                fix=f"write {first.kind} last",
                edit=_edit(facts, name, [*(n for n in range(len(once)) if n not in early), *early]),
                query=name,
            )


def _edit(facts: Facts, query: str, order: Sequence[int]) -> Edit | None:
    """The entries of `to` in another order, where each begins a line of its own."""
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
    # What stands behind the last entry belongs to what comes next.
    while end > starts[-1] and lines[end - 1].strip()[:1] in ("", "#"):
        end -= 1
    ends = [*(start - 1 for start in starts[1:]), end]
    items = [lines[start - 1 : stop] for start, stop in zip(starts, ends, strict=True)]
    made = tuple(line for number in order for line in items[number])
    return Edit(spans[0].file, starts[0] - 1, made, len(made), safe=True)
