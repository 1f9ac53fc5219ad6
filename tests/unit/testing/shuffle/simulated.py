"""A pipeline played without Spark: counts by ten-minute windows, with a watermark a minute behind."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from millstream.diagnostics.finding import Span
from millstream.spec.output_mode import OutputMode
from millstream.testing.model import Case, Expected, Feed, Outcome, Step, StepResult
from millstream.testing.shuffle.output_semantics import Shape
from millstream.testing.shuffle.sink_contents import OutputReading
from millstream.testing.shuffle.splits import list_items
from millstream.testing.shuffle.watermark_model import TimedRow, WatermarkPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from millstream.testing.model import Row

MINUTE = 60_000_000
HERE = Span.point("test.yml")


def case(*minutes: int) -> Case:
    """A test that feeds one row a minute given, all in one step."""
    rows = tuple({"at": item, "n": number} for number, item in enumerate(minutes))
    pipeline: Any = SimpleNamespace(sources={}, queries={}, spark={})
    step = Step((Feed({"clicks": rows}),), Expected(), HERE)
    return Case("windows are counted", pipeline, "counts", (step,), Path("test.yml"), HERE)


@dataclass
class World:
    """The case's answers as `Baseline` gives them, and a play of it; `gives` is a batch's output."""

    case: Case
    gives: Callable[[World, Counter[int], set[int]], list[Row]]
    marked: frozenset[str] = frozenset()
    is_foldable: bool = True
    drops_repeated_rows: bool = False
    has_free_choice: bool = False
    unanswered: str | None = None
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    played: list[Case] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.items = list_items(self.case)
        reading = OutputReading("delta counts", OutputMode.UPDATE, ("begin",))
        self.shape = Shape(
            readings=(reading,),
            has_delayed_rows=False,
            depends_on_clock=False,
            has_user_state=False,
            unstable_expressions=(),
            window=None,
            deduplications=0,
            has_state_removal=False,
            marked=self.marked,
            is_foldable=self.is_foldable,
        )
        self.timed = {item.number: TimedRow("clicks", int(item.record["at"]) * MINUTE) for item in self.items}  # type: ignore[index]
        self.watermark_policy = WatermarkPolicy({} if self.marked else {"clicks": MINUTE})

    def rows(
        self,
        kept: Iterable[int],
        *,
        is_deduplicated: bool = False,  # noqa: ARG002
        last: bool = False,  # noqa: ARG002
    ) -> tuple[Row, ...]:
        """The batch answer."""
        counts = Counter(self.timed[item].time // MINUTE // 10 * 10 for item in kept)  # type: ignore[operator]
        return tuple({"begin": begin, "n": many} for begin, many in counts.items())

    def without_source_deduplication(self) -> Any:
        """The same pipeline."""
        return self.case.pipeline

    def play(self, case: Case) -> Outcome:
        """Each step a batch, late rows dropped."""
        self.played.append(case)
        counts: Counter[int] = Counter()
        newest, mark, outcome = -1, -1, []
        for number, step in enumerate(case.steps):
            touched, dropped = set(), 0
            for action in step.actions:
                for row in action.rows["clicks"] if isinstance(action, Feed) else ():
                    at = int(row["at"])  # type: ignore[index]
                    begin = at // 10 * 10
                    if begin + 10 <= mark:
                        dropped += 1
                        continue
                    counts[begin] += 1
                    touched.add(begin)
                    newest = max(newest, at)
            mark = max(mark, newest - 1)
            rows = {"": tuple(self.gives(self, counts, touched))}
            outcome.append(StepResult(step, (number,), None, rows, dropped))
        return Outcome(case, tuple(outcome), 0.0)


def right(_: World, counts: Counter[int], touched: set[int]) -> list[Row]:
    """Each window that changed, with its count of all batches."""
    return [{"begin": begin, "n": counts[begin]} for begin in sorted(touched)]


def batchwise(_: World, counts: Counter[int], touched: set[int]) -> list[Row]:
    """The mistake: counts start anew with each batch."""
    actual: list[Row] = [{"begin": begin, "n": counts[begin]} for begin in sorted(touched)]
    counts.clear()
    return actual
