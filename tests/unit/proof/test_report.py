"""A report says of each sink whether its promise was kept, and does not call proven what was not compared."""

from __future__ import annotations

from typing import Any

from millstream.engine.batch.sink_comparison import Verdict
from millstream.proof.environment import ProofCounts
from millstream.proof.report import ProofReport


def report(*verdicts: Verdict) -> ProofReport:
    return ProofReport(
        "shop", 7, ProofCounts(), list(verdicts), notes=("orders: console stores no rows and is left out",)
    )


def verdict(**given: Any) -> Verdict:
    return Verdict("orders", "delta:orders", "append", "exactly-once", **given)


def report_summary(found: ProofReport) -> list[object]:
    """The last column of the table of sinks."""
    return [row[-1] for row in found.sinks()[1]]


def test_a_sink_that_holds_what_it_must_is_as_promised() -> None:
    proof_report = report(verdict(rows=5))

    assert (report_summary(proof_report), proof_report.is_equal) == (["as promised"], True)


def test_a_sink_with_a_missing_row_is_broken_whatever_else_is_said_of_it() -> None:
    broken = verdict(note="only the last version of each row is compared")
    broken.count_row("missing", ("a", None))

    proof_report = report(broken, verdict())

    assert (report_summary(proof_report), proof_report.is_equal) == (["BROKEN", "as promised"], False)
    assert proof_report.remarks() == [
        "orders delta:orders: missing: a, NULL",
        "orders delta:orders: only the last version of each row is compared",
        "orders: console stores no rows and is left out",
    ]


def test_a_sink_that_cannot_be_compared_beside_one_that_can_leaves_the_proof_fine() -> None:
    proof_report = report(verdict(is_compared=False), verdict())

    assert (report_summary(proof_report), proof_report.is_equal) == (["not compared", "as promised"], True)


def test_nothing_is_proven_where_no_sink_can_be_compared() -> None:
    assert not report(verdict(is_compared=False)).is_equal


def test_nothing_is_proven_by_a_sink_that_must_hold_nothing() -> None:
    proof_report = report(verdict(is_unproven=True), verdict())

    assert (report_summary(proof_report), proof_report.is_equal) == (["NOTHING PROVEN", "as promised"], False)


def test_a_program_finds_each_sink_with_its_figures_and_keys() -> None:
    broken = verdict(rows=3)
    broken.count_row("doubled", ("a",), 2)

    plain = report(broken).to_json()

    assert plain["fine"] is False
    assert {name: plain["sinks"][0][name] for name in ("rows", "doubled", "keys", "fine", "compared")} == {
        "rows": 3,
        "doubled": 2,
        "keys": {"doubled": ["a"]},
        "fine": False,
        "compared": True,
    }
