from __future__ import annotations

from typing import Any

import pytest

from millstream.analysis.explain.plan_steps import PlanStep
from millstream.cli.explain.query_explanation import QueryExplanation, format_explanation

CLICKS = ["reads clicks", "waits", "keeps the first row"]
CARTS = ["reads carts", "waits", "keeps the first row"]


def explained(*texts: str) -> list[str]:
    """The lines of the steps."""
    operator: Any = None
    steps = [PlanStep(text, None, operator) for text in texts]
    explanation = QueryExplanation("q", [], "q", steps, [], [], [], [], [], [], [], [], is_planned=True)
    return [line.strip() for line in [*format_explanation(explanation)][3:]]


@pytest.mark.parametrize(
    ("texts", "lines"),
    [
        (CLICKS, ["1. reads clicks", "2. waits", "3. keeps the first row"]),
        (
            [*CLICKS, *CARTS, "unites"],
            [
                "1. reads clicks",
                "2. waits",
                "3. keeps the first row",
                "4. reads carts",
                "then steps 2 to 3 again",
                "5. unites",
            ],
        ),
        (
            [*CLICKS, "reads carts", "waits"],
            ["1. reads clicks", "2. waits", "3. keeps the first row", "4. reads carts", "then step 2 again"],
        ),
        (
            ["reads a", "counts", "reads a", "counts", "joins"],
            ["1. reads a", "2. counts", "then steps 1 to 2 again", "3. joins"],
        ),
        (["a", "b", "c", "c", "a"], ["1. a", "2. b", "3. c", "then step 3 again", "then step 1 again"]),
    ],
)
def test_a_step_is_printed_once(texts: list[str], lines: list[str]) -> None:
    assert explained(*texts) == lines
