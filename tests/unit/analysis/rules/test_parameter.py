"""Parameters that the SQL of a view may use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.analysis.rule_context import Facts
from millstream.analysis.rules import ms107_parameter
from millstream.pipeline.spec_file import load_text

if TYPE_CHECKING:
    from pathlib import Path

SPEC = """name: shop
params: {least: 5}
sources:
  orders: {rate: 1}
views:
  big: VIEW
queries:
  big: {to: {console: {}}}
"""


@pytest.mark.parametrize(
    ("view", "count"),
    [
        ("SELECT * FROM orders", 1),
        ("SELECT * FROM orders WHERE value > :least", 0),
        ("SELECT * FROM orders WHERE value > :least AND 'a = 1", 0),
        ("{file: views/absent.sql}", 0),
    ],
)
def test_a_parameter_is_unused_only_if_each_sql_text_was_read(view: str, count: int, tmp_path: Path) -> None:
    loaded = load_text("pipeline.yml", SPEC.replace("VIEW", view), tmp_path, {})
    assert loaded.pipeline is not None, loaded.findings

    assert len(list(ms107_parameter.check(Facts(loaded.pipeline, loaded.places)))) == count
