"""A query's plan in words, as its rows flow: what each operator does, and what it keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.analysis import keeping
from millstream.analysis.dataflow import (
    Aggregate,
    BatchFunction,
    Deduplicate,
    Join,
    Limit,
    Read,
    Stability,
    Stateful,
    StatefulFunction,
    Watermark,
)
from millstream.analysis.reach import keeps
from millstream.analysis.wording import length, listed, quoted
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.analysis.dataflow import Expression, Operator, PlannedQuery
    from millstream.diagnostics.finding import Span

# Columns of Millstream's own between reading and decoding a source.
OURS = "_millstream_"

# Operators that give names and count rows in passing.
_SILENT = frozenset(
    {"SubqueryAlias", "View", "CollectMetrics", "LeafNode", "Subquery", "WithCTE", "CTERelationRef"}
)

_JOINS = {
    "inner": "pairs rows of",
    "cross": "pairs every row of",
    "left_outer": "keeps every row of the left side of",
    "right_outer": "keeps every row of the right side of",
    "full_outer": "keeps every row of both sides of",
    "left_semi": "keeps the rows that have a partner, of",
    "left_anti": "keeps the rows that have no partner, of",
}


@dataclass(frozen=True)
class Kept:
    """The state of an operator: what an entry is, when it leaves, what bounds it, what a late row meets."""

    entry: str
    leaves: str
    growth: str
    late: str = ""
    comes: str = ""


@dataclass(frozen=True)
class Step:
    """One operator in a plain sentence without a full stop."""

    text: str
    span: Span | None
    operator: Operator
    kept: Kept | None = None
    notes: tuple[str, ...] = ()

    def plain(self) -> dict[str, Any]:
        """As `explain --json` has it."""
        state = None
        if self.kept:
            state = {
                "entry": self.kept.entry,
                "leaves": self.kept.leaves,
                "growth": self.kept.growth,
                "late": self.kept.late or None,
                "comes_out": self.kept.comes or None,
            }
        return {
            "text": self.text,
            "file": self.span.file if self.span else None,
            "line": self.span.line if self.span else None,
            "state": state,
            "notes": list(self.notes),
        }


def steps(query: PlannedQuery) -> list[Step]:
    """The operators that do something, from the sources to the sinks; what is read twice is told twice."""
    return list(_steps(query.root, query.output_mode))


def _steps(operator: Operator, mode: OutputMode, above: Operator | None = None) -> Iterator[Step]:
    for below in operator.inputs:
        yield from _steps(below, mode, operator)
    # A union of more than two is a tower of unions of two.
    text = "" if above and above.node == operator.node == "Union" else sentence(operator, mode)
    if not text:
        return
    kept = None
    if isinstance(operator, Stateful) and keeps(operator):
        kept = Kept(
            keeping.entry(operator),
            keeping.leaves(operator, mode),
            keeping.BOUND[operator.growth],
            keeping.late(operator, mode),
            keeping.comes(operator, mode),
        )
    yield Step(text, operator.span, operator, kept, tuple(_notes(operator)))


def sentence(operator: Operator, mode: OutputMode) -> str:
    """What an operator does to the rows; empty for one that only names them."""
    match operator:
        case Read():
            return _read(operator)
        case Watermark():
            return f"lets a row be {length(operator.delay)} older than the newest '{operator.event_time}' of all rows"
        case Aggregate():
            return _aggregate(operator)
        case Deduplicate():
            which = listed(keeping.named(operator.keys))
            until = " as long as the watermark waits for a repetition" if operator.within_watermark else ""
            return f"keeps the first row of each {which}{until}"
        case Join():
            return _join(operator)
        case StatefulFunction():
            keys = f" for each {listed(keeping.named(operator.keys))}" if operator.keys else ""
            waits = (
                f", with timeouts in {operator.timeout.replace('_', ' ')}"
                if operator.timeout != "none"
                else ""
            )
            return f"calls {operator.function or 'a function'}{keys}, which keeps state of its own{waits}"
        case BatchFunction():
            keys = f" for each {listed(keeping.named(operator.keys))}" if operator.keys else ""
            return f"calls {operator.function or 'a function'}{keys} on the rows of one batch; it sees no other batch"
        case Limit():
            rows = "some rows" if operator.rows is None else f"{operator.rows} rows"
            of = "the whole result" if mode is OutputMode.COMPLETE else "the query's whole life, then nothing"
            return (
                f"lets the first {rows} through: of {of}" if operator.streaming else f"takes the first {rows}"
            )
        case _:
            return _other(operator)


def _read(read: Read) -> str:
    if read.source is None and not read.format:
        return "takes rows that stand in the query itself"
    name = f"'{read.source}'" if read.source else f"a {read.format} source"
    kind = f" ({read.format})" if read.source and read.format else ""
    return f"reads {name}{kind}" if read.streaming else f"reads {name}{kind} as a table"


def _aggregate(operator: Aggregate) -> str:
    made = list(dict.fromkeys(one.text for one in operator.functions))
    what = f" and computes {_several(made)}" if made else ""
    if not operator.keys:
        return f"puts all rows together{what}"
    return f"groups rows by {listed(keeping.named(operator.keys, operator.window))}{what}"


def _join(join: Join) -> str:
    verb = _JOINS.get(join.how, f"joins ({join.how})")
    sides = "two streams" if join.of_streams else "a stream and a table" if join.streaming else "two tables"
    on = f" where {_short(join.condition.text)}" if join.condition else ""
    return f"{verb} {sides}{on}"


def _other(operator: Operator) -> str:
    if operator.node in _SILENT or OURS in operator.text or _of_window(operator):
        return ""
    texts = [one.text for one in operator.expressions]
    match operator.node:
        case "Filter":
            return f"keeps rows where {_short(' and '.join(texts))}"
        case "Project":
            made = [_made(one) for one in operator.expressions if not _carried(one)]
            return f"computes {_several(made)}" if made else ""
        case "Union":
            return f"puts the rows of {_united(operator)} inputs together"
        case "Generate":
            return f"makes rows out of {_short(', '.join(texts))}"
        case "Sort":
            return f"orders rows by {_short(', '.join(texts))}"
        case "Expand":
            return "repeats each row for every grouping set"
        case _:
            return f"runs Spark's {operator.node} over them"


def _united(operator: Operator) -> int:
    return sum(_united(one) if one.node == "Union" else 1 for one in operator.inputs)


def _of_window(operator: Operator) -> bool:
    """Is it what Spark makes of `window(…)`: the window as a column, and rows without a time left out?"""
    if operator.node == "Expand":
        return any(_is_window(one) for one in operator.expressions)
    made = [one for one in operator.expressions if not _carried(one)]
    if operator.node == "Filter":
        return bool(made) and all(one.function == "is_not_null" for one in made)
    return bool(made) and all(_is_window(one) for one in made)


def _is_window(expression: Expression) -> bool:
    while expression.function == "alias" and expression.inputs:
        expression = expression.inputs[0]
    return expression.function in ("window", "session_window")


def _made(expression: Expression) -> str:
    """The name that an expression gets, or the expression."""
    _, named, name = expression.text.rpartition(" AS ")
    return f"'{name.strip('`')}'" if named else expression.text


def _carried(expression: Expression) -> bool:
    """Is it a column as it came, perhaps under another name?"""
    while expression.function == "alias" and expression.inputs:
        expression = expression.inputs[0]
    return expression.function in ("column", "outer")


def _several(texts: Sequence[str]) -> str:
    """A list that stays readable: the first few, and how many more."""
    shown = [_short(text, 60) for text in texts[:5]]
    return listed(shown) if len(texts) == len(shown) else f"{', '.join(shown)} and {len(texts) - 5} more"


def _short(text: str, most: int = 100) -> str:
    whole = " ".join(text.split())
    return whole if len(whole) <= most else f"{whole[: most - 1]}…"


def _notes(operator: Operator) -> Iterator[str]:
    """What is good to know of an operator and blames nothing."""
    if isinstance(operator, Watermark):
        time = operator.column(operator.event_time)
        if time and any(cause.stability is Stability.BATCH for cause in time.volatile):
            yield f"'{time.name}' is the time of the batch: by it no row is ever late"
    if isinstance(operator, Deduplicate):
        clock = [
            one.name for one in operator.keys if any(c.stability is Stability.BATCH for c in one.volatile)
        ]
        if clock:
            yield f"{quoted(clock)} is the time of the batch: rows of two batches are never the same"
