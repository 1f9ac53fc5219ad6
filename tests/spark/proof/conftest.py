"""Rows for proofs of migrations."""

from __future__ import annotations

import pytest

from millstream.checking.sample_rows.generated_rows import plan_rows
from millstream.proof.migration import input_files


@pytest.fixture
def three_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Generate three of the five files of a source: one in order, one with a late row, the one far ahead."""
    first, *_, with_late_row, last = plan_rows()
    monkeypatch.setattr(input_files, "plan_rows", lambda: [first, with_late_row, last])
