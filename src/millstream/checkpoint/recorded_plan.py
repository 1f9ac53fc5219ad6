"""Values that describe what a query's plan reads, keeps in state and writes, as a checkpoint's record stores them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any


@dataclass(frozen=True)
class PlanExpression:
    """One expression of a plan: its text over columns of sources, its type and whether it can be null.

    Columns of views are replaced by their expressions, so that a renamed column has the same text. `name` is the
    column's name, for messages. For an aggregate, `type` lists the types of its buffer.
    """

    text: str
    type: str
    nullable: bool = True
    name: str = ""


@dataclass(frozen=True)
class RecordedStatefulOperator:
    """One operator with state, as Spark stores it.

    `values` are the aggregates of an aggregation or the columns that the left side of a join stores; `right_keys` and
    `right_values` are those of the right side. `input` describes the operators between this one and the next operator
    with state or the sources: filters, joins with tables, unions. `functions` are the Python functions among them.
    """

    kind: str
    keys: tuple[PlanExpression, ...] = ()
    values: tuple[PlanExpression, ...] = ()
    right_keys: tuple[PlanExpression, ...] = ()
    right_values: tuple[PlanExpression, ...] = ()
    join_type: str = ""
    condition: tuple[str, ...] = ()
    input: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    """For each line of `input` the branch of a union, or the side of the join, in which it is; empty text for none.

    Empty if no line is in one, and in records of older versions."""
    view: str = ""
    """The view that declares a processor, for an operator that runs one."""
    state: dict[str, Any] = field(default_factory=dict)
    """What a view declares about its processor: state variables, time mode, output mode."""


@dataclass(frozen=True)
class RecordedWatermark:
    """A watermark: the event-time expression and the delay in Spark's words."""

    column: str
    delay: str


@dataclass(frozen=True)
class RecordedPlan:
    """A query's optimised plan, reduced to what a later version of the query is compared with."""

    fingerprint: str
    """A hash of the whole plan. Equal fingerprints mean equal plans; different ones may still mean equal results."""
    stateful: tuple[RecordedStatefulOperator, ...] = ()
    """The operators with state, from the top."""
    watermarks: tuple[RecordedWatermark, ...] = ()
    output: tuple[str, ...] = ()
    """The operators above all state: filters, joins with tables, unions."""
    output_branches: tuple[str, ...] = ()
    """The branches of unions for the lines of `output`, as `RecordedStatefulOperator.branches`."""
    columns: tuple[PlanExpression, ...] = ()
    """The columns that the sinks receive."""
    functions: tuple[str, ...] = ()
    """The Python functions above all state."""
    has_clock: bool = False
    """Whether the plan may depend on the current time, which its texts have as `current_timestamp()`. Older versions
    wrote the time of the start, and False."""

    def to_json(self) -> dict[str, Any]:
        """Return the plan as values of JSON, without empty fields."""
        data = asdict(self)
        data["stateful"] = [
            {key: value for key, value in entry.items() if value not in ((), {}, "")}
            for entry in data["stateful"]
        ]
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> RecordedPlan:
        """Read what `to_json` returned, after a trip through JSON. Unknown fields of a newer version are ignored."""
        return cls(
            fingerprint=data["fingerprint"],
            stateful=tuple(_read_operator(entry) for entry in data.get("stateful", ())),
            watermarks=tuple(RecordedWatermark(**entry) for entry in data.get("watermarks", ())),
            output=tuple(data.get("output", ())),
            output_branches=tuple(data.get("output_branches", ())),
            columns=_read_terms(data.get("columns", ())),
            functions=tuple(data.get("functions", ())),
            has_clock=data.get("has_clock", False),
        )


_TERMS = ("keys", "values", "right_keys", "right_values")


def _read_operator(entry: dict[str, Any]) -> RecordedStatefulOperator:
    known = {item.name for item in fields(RecordedStatefulOperator)}
    values: dict[str, Any] = {}
    for name, value in entry.items():
        if name in known:
            values[name] = (
                _read_terms(value) if name in _TERMS else tuple(value) if isinstance(value, list) else value
            )
    return RecordedStatefulOperator(**values)


def _read_terms(entries: Any) -> tuple[PlanExpression, ...]:
    return tuple(PlanExpression(**entry) for entry in entries)
