"""Random changes of the examples: what `plan` lets continue gives the rows of a query that was always like this."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from example_specs import make_rows, read_examples
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from pyspark.errors import PySparkException
from random_edits import apply_edits
from restart_run import Edit, Restarts

from sweep import size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("small_batches")

DRAWS = size(6, 300, "MILLSTREAM_EDITS")
SPECS = read_examples()
# Each example in turn, and each of its queries.
BASES = sorted(SPECS)
_NOT_A_PIPELINE = (ValidationError, PySparkException)


@pytest.fixture(scope="module")
def restarts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restarts]:
    """The examples' checkpoints, each made when it is first drawn."""
    return Restarts(spark, tmp_path_factory.mktemp("random"), make_rows(SPECS))


@pytest.mark.timeout(3600)
def test_no_random_change_of_an_example_that_continues_is_silently_wrong(restarts: Restarts) -> None:
    outcomes: Counter[str] = Counter()

    @settings(
        max_examples=DRAWS,
        deadline=None,
        derandomize=True,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.sampled_from(BASES), st.lists(st.integers(0, 9_999), min_size=1, max_size=3))
    def change(base: str, numbers: list[int]) -> None:
        name, changed = apply_edits(SPECS[base], numbers)
        edit = Edit(name, base, {key: changed[key] for key in ("sources", "views", "queries", "spark")})
        try:
            outcome = restarts.restart(edit, SPECS[base], skips_refused=True)
        except _NOT_A_PIPELINE:
            outcomes["no pipeline"] += 1
            event("no pipeline")
            return
        outcomes[outcome.what] += 1
        event(f"{outcome.plan.verdict}: {outcome.what}")
        assert outcome.what != "wrong", (str(edit), outcome.detail, outcome.plan.judgements)

    change()
    assert sum(outcomes.values()) >= DRAWS
    assert outcomes["right"] > 0
