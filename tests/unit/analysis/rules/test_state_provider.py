"""The setting that transformWithState needs, added to a spec."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.analysis.query.plan_model import PlannedQuery, Read, StatefulFunction
from millstream.analysis.rule_context import Facts
from millstream.analysis.rules import ms407_state_provider
from millstream.diagnostics.text_patch import apply_edits
from millstream.pipeline.spec_file import load_text
from millstream.spec.output_mode import OutputMode
from millstream.spec.trigger import Trigger

SPEC = """name: shop
sources:
  orders: {rate: 1}
queries:
  orders: {to: {console: {}}}
"""


@pytest.mark.parametrize("indent", [0, 1, 2, 4])
def test_its_edit_has_the_indent_of_the_other_settings(indent: int) -> None:
    settings = f"spark:\n{' ' * indent}spark.sql.shuffle.partitions: 4\n" if indent else ""
    text = SPEC + settings
    loaded = load_text("pipeline.yml", text, Path(), {})
    assert loaded.pipeline is not None, loaded.findings
    function = StatefulFunction(
        0, "TransformWithState", "", (Read(1, "StreamingRelation", "", is_streaming=True),), is_streaming=True
    )
    query = PlannedQuery("orders", function, OutputMode.UPDATE, Trigger())

    (finding,) = ms407_state_provider.judge(query, Facts(loaded.pipeline, loaded.places))

    assert finding.edit is not None
    changed, _ = apply_edits(text, [finding.edit])
    loaded = load_text("pipeline.yml", changed, Path(), {})
    assert loaded.pipeline is not None, loaded.findings
    assert "spark.sql.streaming.stateStore.providerClass" in loaded.pipeline.spark
