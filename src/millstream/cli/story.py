"""A query explained: where its rows come from, what is done to them, and what time, lateness and a crash do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.analysis import fate
from millstream.analysis.guarantee import promises
from millstream.analysis.telling import steps
from millstream.pipeline.drawing import branch
from millstream.pipeline.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.analysis.guarantee import Promise
    from millstream.analysis.telling import Step
    from millstream.pipeline.load import Loaded


@dataclass(frozen=True)
class Story:
    """All that is told of one query. `steps`, `clock` and `late` are empty where there is no plan."""

    query: str
    path: list[str]
    checkpoint: str
    steps: list[Step]
    expected: list[str]
    clock: list[str]
    late: list[str]
    crash: list[str]
    fresh: list[str]
    promises: list[Promise]
    planned: bool

    def plain(self) -> dict[str, Any]:
        """As `explain --json` has it."""
        return {
            "query": self.query,
            "checkpoint": self.checkpoint,
            "planned": self.planned,
            "steps": [step.plain() for step in self.steps],
            "expectations": self.expected,
            "watermark": self.clock,
            "late_row": self.late,
            "crash": self.crash,
            "fresh_start": self.fresh,
            "guarantees": [promise.plain() for promise in self.promises],
        }


def story(loaded: Loaded, name: str, plan: PlannedQuery | None) -> Story:
    """What is known of a query of a spec that has a model."""
    pipeline = loaded.pipeline
    assert pipeline is not None
    graph = Graph.of(pipeline)
    kept = [one for one in promises(pipeline, [plan] if plan else [], loaded.places) if one.query == name]
    return Story(
        name,
        branch(graph, name),
        str(pipeline.checkpoint(name)).removeprefix(f"{pipeline.folder}/"),
        steps(plan) if plan else [],
        fate.expected(graph, name),
        fate.clock(plan) if plan else [],
        fate.late(plan) if plan else [],
        fate.crash(graph, name, kept, plan),
        fate.fresh(graph, name),
        kept,
        plan is not None,
    )


def lines(told: Story) -> Iterator[str]:
    """A story as text, section by section."""
    yield from told.path
    yield f"  checkpoint {told.checkpoint}"
    if told.steps:
        yield from ("", "what it does, as rows flow")
        for number, step in enumerate(told.steps, 1):
            yield from _step(number, step)
    for head, sentences in (
        ("expected of its rows", told.expected),
        ("time", told.clock),
        ("a late row", told.late),
        ("a crash", told.crash),
        ("a fresh checkpoint", told.fresh),
    ):
        if sentences:
            yield from ("", head, *(f"  {sentence}" for sentence in sentences))
    for promise in told.promises:
        yield from ("", f"{promise.sink}: {promise.guarantee}")
        yield from (f"  {reason}" for reason in promise.reasons)
        if promise.weakest:
            yield f"  weakest: {_placed(promise.weakest.text, promise.weakest.span)}"


def _step(number: int, step: Step) -> Iterator[str]:
    yield f"{number:>3}. {_placed(step.text, step.span)}"
    if step.kept:
        kept = step.kept
        told = [("state", kept.entry), ("leaves", kept.leaves), ("size", kept.growth)]
        yield from (f"       {word:<7} {text}" for word, text in told)
    yield from (f"       note    {note}" for note in step.notes)


def _placed(text: str, span: Any) -> str:
    place = f"({span.file}:{span.line})" if span else ""
    return text if not place or place in text else f"{text}  {place}"


def unplanned(names: Sequence[str]) -> str:
    """What `--fast` leaves out."""
    return f"what it does and keeps is read from Spark's plan: millstream explain {' '.join(names)}"
