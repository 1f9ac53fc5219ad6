"""Explain a query: its path, its steps, its watermark, late rows, crashes and guarantees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.analysis.explain import runtime_behaviour
from millstream.analysis.explain.plan_steps import list_steps
from millstream.analysis.query.delivery_guarantee import compute_guarantees
from millstream.pipeline.export.graph_export import query_lines
from millstream.pipeline.graph import PipelineGraph

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.analysis.explain.plan_steps import PlanStep
    from millstream.analysis.query.delivery_guarantee import Promise
    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.pipeline.spec_file import LoadedSpec


@dataclass(frozen=True)
class QueryExplanation:
    """The explanation of one query. `steps`, `clock`, `late` and `store` are empty if there is no plan."""

    query: str
    path: list[str]
    checkpoint: str
    steps: list[PlanStep]
    expected: list[str]
    clock: list[str]
    late: list[str]
    store: list[str]
    crash: list[str]
    fresh: list[str]
    small: list[str]
    promises: list[Promise]
    is_planned: bool

    def plain(self) -> dict[str, Any]:
        """Convert to the JSON of `explain --json`."""
        return {
            "query": self.query,
            "checkpoint": self.checkpoint,
            "planned": self.is_planned,
            "steps": [step.plain() for step in self.steps],
            "expectations": self.expected,
            "watermark": self.clock,
            "late_row": self.late,
            "state_store": self.store,
            "crash": self.crash,
            "fresh_start": self.fresh,
            "small_batch": self.small,
            "guarantees": [promise.plain() for promise in self.promises],
        }


def explain_query(loaded: LoadedSpec, name: str, plan: PlannedQuery | None) -> QueryExplanation:
    """Explain a query of a spec that has no errors; `plan` is None if Spark has not planned it."""
    pipeline = loaded.pipeline
    assert pipeline is not None
    graph = PipelineGraph.of(pipeline)
    guarantees = [
        promise
        for promise in compute_guarantees(pipeline, [plan] if plan else [], loaded.places)
        if promise.query == name
    ]
    return QueryExplanation(
        name,
        query_lines(graph, name),
        str(pipeline.checkpoint(name)).removeprefix(f"{pipeline.folder}/"),
        list_steps(plan) if plan else [],
        runtime_behaviour.describe_expectations(graph, name),
        runtime_behaviour.describe_watermark(plan) if plan else [],
        runtime_behaviour.describe_late_rows(plan) if plan else [],
        runtime_behaviour.describe_state_store(plan) if plan else [],
        runtime_behaviour.describe_crash(graph, name, guarantees, plan),
        runtime_behaviour.describe_new_checkpoint(graph, name),
        runtime_behaviour.describe_small_batch(pipeline, name),
        guarantees,
        plan is not None,
    )


def format_explanation(explanation: QueryExplanation) -> Iterator[str]:
    """Format an explanation as text, section by section."""
    yield from explanation.path
    yield f"  checkpoint {explanation.checkpoint}"
    if explanation.steps:
        yield from ("", "steps, in the order rows pass them")
        yield from _steps(explanation.steps)
    for heading, sentences in (
        ("expectations", explanation.expected),
        ("time", explanation.clock),
        ("a late row", explanation.late),
        ("its state", explanation.store),
        ("a crash", explanation.crash),
        ("a fresh checkpoint", explanation.fresh),
        ("a small batch", explanation.small),
    ):
        if sentences:
            yield from ("", heading, *(f"  {sentence}" for sentence in sentences))
    for promise in explanation.promises:
        yield from ("", f"{promise.sink}: {promise.guarantee}")
        yield from (f"  {reason}" for reason in promise.reasons)
        if promise.weakest:
            yield f"  weakest: {_placed(promise.weakest.text, promise.weakest.span)}"


def _steps(steps: Sequence[PlanStep]) -> Iterator[str]:
    """Format the steps, each once: inputs that are treated alike refer to the steps of the first one."""
    numbers: dict[tuple[object, ...], int] = {}
    repeated: list[int] = []
    for step in steps:
        number = numbers.get(content := (step.text, step.state, step.notes))
        if number is not None and (not repeated or number == repeated[-1] + 1):
            repeated.append(number)
            continue
        yield from _repetition(repeated)
        repeated = [] if number is None else [number]
        if number is None:
            numbers[content] = len(numbers) + 1
            yield from _step(numbers[content], step)
    yield from _repetition(repeated)


def _repetition(numbers: Sequence[int]) -> Iterator[str]:
    """Name the steps that come again."""
    if numbers:
        words = f"step {numbers[0]}" if len(numbers) == 1 else f"steps {numbers[0]} to {numbers[-1]}"
        yield f"     then {words} again"


def _step(number: int, step: PlanStep) -> Iterator[str]:
    yield f"{number:>3}. {_placed(step.text, step.span)}"
    if step.state:
        state = step.state
        details = [("state", state.entry), ("leaves", state.leaves), ("size", state.growth)]
        yield from (f"       {word:<7} {text}" for word, text in details)
    yield from (f"       note    {note}" for note in step.notes)


def _placed(text: str, span: Any) -> str:
    place = f"({span.file}:{span.line})" if span else ""
    return text if not place or place in text else f"{text}  {place}"


def plan_omitted_note(names: Sequence[str]) -> str:
    """Return a note that names the command for what `--fast` omits."""
    return f"--fast omits the steps and state, which need Spark's plan: millstream explain {' '.join(names)}"
