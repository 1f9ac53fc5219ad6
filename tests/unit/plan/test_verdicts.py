"""Two records, and the verdict on the way from one to the other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest

from millstream.checkpoint.metadata import QueryMetadata
from millstream.plan import changes
from millstream.plan.change_kinds import query_changes, source_changes, state_changes
from millstream.plan.query_plan import QueryPlan, plan_query
from millstream.plan.verdict import RestartVerdict
from unit.plan.recorded_queries import STATE, record
from unit.plan.verdict_cases import CASES


def judge(before: QueryMetadata, now: QueryMetadata) -> QueryPlan:
    """The verdict, after a trip of the former record through its file."""
    return plan_query("q", "/c", QueryMetadata.from_json(before.to_json()), now)


@pytest.mark.parametrize("name", CASES)
def test_a_change_has_its_verdict(name: str) -> None:
    before, now, verdict, kinds = CASES[name]

    judged = judge(before, now)

    assert (judged.verdict.value, [judgement.kind for judgement in judged.judgements]) == (verdict, kinds)


@pytest.mark.parametrize(
    "name", [name for name, case in CASES.items() if case[2] in ("start_afresh", "silently_wrong")]
)
def test_a_refused_change_says_what_spark_does_and_what_to_do(name: str) -> None:
    judged = judge(*CASES[name][:2])

    worst = judged.judgements[0]
    assert worst.verdict.is_refused
    assert worst.what
    assert worst.spark
    assert worst.sinks
    assert worst.fix


@pytest.mark.parametrize(
    ("option", "before", "now", "what_spark_does"),
    [
        ("fail_on_data_loss", True, False, "skips records that were deleted before it read them"),
        ("fail_on_data_loss", False, True, "ends the query if records were deleted before it read them"),
        ("group_id", None, "readers", "uses the new consumer group"),
        ("group_id_prefix", "a", "b", "uses the new consumer group"),
        ("max_file_age", "7 days", "1 day", "never reads a file that is more than 1 day older"),
        ("max_file_age", "7 days", None, "reads files of any age"),
        ("file_name_only", False, True, "never reads a file with the name of one that it has read"),
        ("file_name_only", True, False, "reads a file again that was moved"),
    ],
)
def test_an_option_that_each_start_uses_is_not_one_of_a_new_checkpoint(
    option: str, before: Any, now: Any, what_spark_does: str
) -> None:
    records = [
        record(STATE, inputs={"orders": {"json": {"path": "in", option: value}}}) for value in (before, now)
    ]

    judged = judge(*records)

    judgement = judged.judgements[0]
    assert judgement.verdict is RestartVerdict.CONTINUES_WITH_NOTE
    assert judgement.spark.startswith("from the next start on, Spark ")
    assert what_spark_does in judgement.spark
    assert judgement.place == f"sources.orders.{option}"


def test_the_code_of_an_accepted_verdict_belongs_to_one_query_and_one_change() -> None:
    first = judge(*CASES["sum to max"][:2])
    second = judge(*CASES["a longer window"][:2])

    assert first.accept_code != second.accept_code
    assert first.accept_code != replace(first, query="other").accept_code
    assert first.accept_code == judge(*CASES["sum to max"][:2]).accept_code


def test_every_kind_of_change_belongs_to_one_judge() -> None:
    judged = [*get_args(changes.SourceChange), *get_args(changes.StateChange), *get_args(changes.QueryChange)]
    defined = [
        item
        for module in (source_changes, state_changes, query_changes)
        for item in vars(module).values()
        if isinstance(item, type) and hasattr(item, "__match_args__")
    ]

    assert sorted(kind.__name__ for kind in judged) == sorted(kind.__name__ for kind in defined)
