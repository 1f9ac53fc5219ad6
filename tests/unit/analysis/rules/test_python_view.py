"""A file of functions that is not Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Facts
from millstream.analysis.rules import ms108_python_view
from millstream.pipeline.spec_file import load_text

if TYPE_CHECKING:
    from pathlib import Path

SPEC = """name: shop
sources:
  orders: {json: {path: in}, schema: {id: string}}
queries:
  copy: {from: orders, to: {foreach_batch: "deliveries:send"}}
"""


def test_a_file_that_is_not_python_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "deliveries.py").write_text("LIMIT = 1\ndef send(frame, batch_id) return\n")
    loaded = load_text("pipeline.yml", SPEC, tmp_path, {})
    assert loaded.pipeline is not None, loaded.findings

    (finding,) = ms108_python_view.check(Facts(loaded.pipeline, loaded.places))

    assert "deliveries.py is not valid Python: " in finding.message
    assert finding.message.endswith("(line 2)")
