"""The exit code of `prove`, and what is left of a proof: nothing of one without a finding."""

from __future__ import annotations

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
