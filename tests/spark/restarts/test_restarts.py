"""What `plan` says of a change and what Spark then does with it agree, on real checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from bases import BASES, FILES, OTHER_FILES
from edits import EDITS, RIGHT_WITH_THIS_INPUT
from log_inputs import DeltaTables, Topics
from restart_run import Edit, Restarts
from restarts_page import PAGE, read_lines, update_page

from sweep import WHOLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("small_batches")

TOPICS = ("kafka", "topics")
# The part of `make test`: one change for each verdict and for each way in which Spark gets it wrong.
PART = {
    "totals: nothing",
    "totals: sum to max",
    "totals: one aggregate more",
    "totals: key changed in a query below",
    "totals: having on the key",
    "windows: longer window",
    "rows: filter",
    "pairs: one column less above",
    "pairs: narrower bound",
    "delta: filter below",
    "processor: another number stored",
}
PART_WITH_OTHER_INPUT = {"union: one source twice"}


@pytest.fixture(scope="module")
def restarts(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Restarts]:
    """Checkpoints of the base pipelines, each made once."""
    logs = {
        "delta": DeltaTables,
        **{base: lambda folder: Topics(folder, request.getfixturevalue("stack").kafka) for base in TOPICS},
    }
    made = Restarts(spark, tmp_path_factory.mktemp("restarts"), FILES, logs)
    yield made
    if WHOLE:
        update_page(made.outcomes, ())


@pytest.fixture(scope="module")
def others(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restarts]:
    """Checkpoints of the same pipelines over other input."""
    made = Restarts(spark, tmp_path_factory.mktemp("others"), OTHER_FILES)
    yield made
    if WHOLE:
        update_page({}, [edit for edit, outcome in made.outcomes.items() if outcome.what == "wrong"])


@pytest.mark.parametrize("edit", [edit for edit in EDITS if WHOLE or str(edit) in PART], ids=str)
def test_the_verdict_on_a_change_is_what_spark_does(edit: Edit, restarts: Restarts) -> None:
    outcome = restarts.restart(edit, BASES[edit.base])

    changes = [(judgement.kind, judgement.what) for judgement in outcome.plan.judgements]
    assert (str(outcome.plan.verdict), outcome.what) == (edit.verdict, edit.outcome), (
        outcome.detail,
        changes,
    )


@pytest.mark.parametrize(
    "edit",
    [edit for edit in EDITS if str(edit) in (RIGHT_WITH_THIS_INPUT if WHOLE else PART_WITH_OTHER_INPUT)],
    ids=str,
)
def test_a_change_that_is_refused_gives_wrong_rows_with_one_input_or_another(
    edit: Edit, others: Restarts
) -> None:
    outcome = others.restart(edit, BASES[edit.base])

    assert outcome.plan.verdict == edit.verdict
    assert outcome.what == "wrong", outcome.detail


def test_no_change_that_spark_gets_wrong_continues_and_none_that_it_gets_right_is_refused() -> None:
    """The table itself; the tests above hold each line of it against Spark."""
    assert len(EDITS) >= 150
    for edit in EDITS:
        if edit.verdict == "cannot_tell":
            # Code: whether its results differ is not decided by its text.
            assert "code" in str(edit.change), str(edit)
            continue
        continues = edit.verdict in ("continues", "continues_with_note", "repartition")
        assert continues == (edit.outcome == "right") or str(edit) in RIGHT_WITH_THIS_INPUT, str(edit)


def test_the_page_has_each_change_with_its_verdict() -> None:
    lines = read_lines(PAGE.read_text())
    words = {"right": "right rows", "wrong": "**wrong rows", "refused": "refuses the start"}

    assert lines.keys() == {(edit.base, edit.name) for edit in EDITS}
    for edit in EDITS:
        _, _, verdict, outcome, _ = lines[edit.base, edit.name].split("|")
        assert verdict.strip().replace(" ", "_") == edit.verdict, str(edit)
        assert outcome.strip().startswith(words[edit.outcome]), str(edit)
        assert ("other input" in outcome) == (str(edit) in RIGHT_WITH_THIS_INPUT), str(edit)
