"""What `plan` says of a change and what Spark then does with it agree, on real checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from bases import BASES, FILES
from edits import EDITS, RIGHT_WITH_THIS_INPUT
from restart_run import Edit, Restarts
from restarts_page import write_page

from sweep import WHOLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

# The part of `make test`: one change for each verdict and for each way in which Spark gets it wrong.
PART = {
    "totals: nothing",
    "totals: sum to max",
    "totals: one aggregate more",
    "totals: key changed in a query below",
    "windows: longer window",
    "rows: filter",
    "pairs: one column less above",
}


@pytest.fixture(scope="module")
def restarts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restarts]:
    """Checkpoints of the base pipelines, each made once."""
    made = Restarts(spark, tmp_path_factory.mktemp("restarts"), FILES)
    yield made
    write_page(made.outcomes)


@pytest.mark.parametrize("edit", [edit for edit in EDITS if WHOLE or str(edit) in PART], ids=str)
def test_the_verdict_on_a_change_is_what_spark_does(edit: Edit, restarts: Restarts) -> None:
    outcome = restarts.restart(edit, BASES[edit.base])

    changes = [(judgement.kind, judgement.what) for judgement in outcome.plan.judgements]
    assert (str(outcome.plan.verdict), outcome.what) == (edit.verdict, edit.outcome), (
        outcome.detail,
        changes,
    )


def test_no_change_that_spark_gets_wrong_continues_and_none_that_it_gets_right_is_refused() -> None:
    """The table itself; the test above holds each line of it against Spark."""
    for edit in EDITS:
        continues = edit.verdict in ("continues", "continues_with_note", "repartition")
        assert continues == (edit.outcome == "right") or str(edit) in RIGHT_WITH_THIS_INPUT, str(edit)
