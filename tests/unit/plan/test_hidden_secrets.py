"""A record of a query has no secret, and yet shows that one has changed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.checkpoint.metadata import QueryMetadata, RecordedOperator
from millstream.pipeline.spec_file import load_text
from millstream.plan.declared_query import declare_without_plan, hide_secrets
from millstream.plan.query_plan import plan_query
from millstream.spec.secrets.redaction import REDACTOR
from unit.plan.recorded_queries import plan, record, with_key

if TYPE_CHECKING:
    from pathlib import Path

SPEC = """
name: shop
params: {hash_secret: first-c4nary, pin_token: 17, least: 3}
sources:
  orders: {json: in, schema: {k: string, v: bigint}}
views:
  sums: SELECT sha2(concat(k, :hash_secret), 256) AS k, sum(v) AS s FROM orders WHERE v > :least GROUP BY 1
queries:
  sums: {output_mode: update, to: {delta: lake/sums}}
"""


def declare(folder: Path, text: str) -> QueryMetadata:
    pipeline = load_text("pipeline.yml", text, folder, {}).pipeline
    assert pipeline is not None
    nothing = QueryMetadata("sums", "one", (), (), (), "", {}, {}, {})
    return declare_without_plan(pipeline, "sums", ["delta:lake/sums"], nothing)


def keyed(secret: str) -> QueryMetadata:
    """The record of a query whose key contains a secret, which Spark has bound into the plan."""
    REDACTOR.protect(secret)
    operator = RecordedOperator("Aggregate", f"Aggregate [{secret}]", f"Aggregate [{secret}]")
    return record(plan(with_key(f"concat(orders.k, {secret})")), operators=(operator,))


def test_a_parameter_that_is_a_secret_is_not_in_the_record(tmp_path: Path) -> None:
    declared = declare(tmp_path, SPEC)

    assert "c4nary" not in declared.to_json()
    assert declared.params["least"] == "3"
    assert all(declared.params[name].startswith("***") for name in ("hash_secret", "pin_token"))


def test_another_secret_gives_another_record(tmp_path: Path) -> None:
    before, same, now = (
        declare(tmp_path, SPEC.replace("first", word)).params for word in ("first", "first", "other")
    )

    assert before == same
    assert before["hash_secret"] != now["hash_secret"]


def test_the_plan_of_a_query_is_recorded_without_its_secrets() -> None:
    assert "c4nary" not in hide_secrets(keyed("first-c4nary")).to_json()


def test_another_secret_in_a_key_is_judged_as_another_key_and_not_shown() -> None:
    before, now = hide_secrets(keyed("first-c4nary")), hide_secrets(keyed("other-c4nary"))

    judged = plan_query("q", "/c", before, now)

    assert [judgement.kind for judgement in judged.judgements] == ["key_changed"]
    assert "c4nary" not in str(judged)


def test_a_record_of_an_older_version_with_the_same_secret_has_not_changed() -> None:
    older = keyed("first-c4nary")

    assert plan_query("q", "/c", older, hide_secrets(older)).judgements == ()


def test_a_secret_has_another_hash_in_another_checkpoint() -> None:
    one = keyed("first-c4nary")

    assert hide_secrets(one).plan != hide_secrets(replace(one, query_id="two")).plan
