"""The exit code of `prove`, and what is left of a proof: nothing of one without a finding."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from commands import call
from millstream.cli.prove import prove
from millstream.engine.batch.sink_comparison import Verdict
from millstream.proof.environment import ProofCounts
from millstream.proof.report import ProofReport

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("doubled", "code"), [(0, 0), (1, 1)])
def test_a_proof_without_a_finding_ends_with_0_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, doubled: int, code: int
) -> None:
    verdict = Verdict("orders", "delta:orders", "append", "exactly-once", rows=5, doubled=doubled)
    monkeypatch.setattr(
        prove, "_proven", lambda *_: ProofReport("shop", 7, ProofCounts(), [verdict], notes=())
    )
    (tmp_path / "pipeline.yml").write_text("name: shop\n")

    done = call(tmp_path, "prove", "--seed", "7", "--kills", "1", env={})

    assert done.returncode == code, done.both
    assert (tmp_path / ".millstream" / "proof" / "7").exists() is bool(code)


def test_the_report_is_written_into_a_folder_that_did_not_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = Verdict("orders", "delta:orders", "append", "exactly-once", rows=5, doubled=0)
    monkeypatch.setattr(prove, "_proven", lambda *_: ProofReport("shop", 7, ProofCounts(), [verdict]))
    (tmp_path / "pipeline.yml").write_text("name: shop\n")

    done = call(tmp_path, "prove", "--seed", "7", "--json", "reports/proof.json", env={})

    assert done.returncode == 0, done.both
    assert json.loads((tmp_path / "reports/proof.json").read_text())["seed"] == 7


def test_the_files_of_a_proof_stay_if_its_report_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def prove_and_delete_the_folder(*_: object) -> ProofReport:
        (tmp_path / "reports").rmdir()
        return ProofReport("shop", 7, ProofCounts(), [verdict])

    verdict = Verdict("orders", "delta:orders", "append", "exactly-once", rows=5, doubled=0)
    monkeypatch.setattr(prove, "_proven", prove_and_delete_the_folder)
    (tmp_path / "pipeline.yml").write_text("name: shop\n")

    done = call(tmp_path, "prove", "--seed", "7", "--json", "reports/proof.json", env={})

    assert done.returncode == 2, done.both
    assert (tmp_path / ".millstream/proof/7").exists()


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (".", "--json: . is a folder"),
        ("pipeline.yml/proof.json", "pipeline.yml/proof.json cannot be written: "),
        ("/proc/proof.json", "/proc/proof.json cannot be written: "),
        ("linked.json", "linked.json cannot be written: "),
    ],
)
def test_a_report_that_cannot_be_written_is_refused_before_the_proof(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, reason: str
) -> None:
    monkeypatch.setattr(prove, "_proven", lambda *_: pytest.fail("the proof has begun"))
    (tmp_path / "pipeline.yml").write_text("name: shop\n")
    # An existing file that root cannot write either.
    (tmp_path / "linked.json").symlink_to("/proc/sys/kernel/ostype")

    done = call(tmp_path, "prove", "--json", file, env={})

    assert done.returncode == 2, done.both
    assert reason in done.stderr
