"""The file that `millstream test --update` writes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.cli.test.update import _write
from millstream.testing.files.loader import load_text
from millstream.testing.model import Outcome, StepResult
from millstream.testing.runner.compare import find_differences

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """\
pipeline: {name: shop, sources: {s: {rate: {}}}, queries: {q: {from: s, to: {console: }}}}
tests:
  it ticks:
    steps:
      - expect: [{value: 1}]
"""


def test_a_file_is_replaced_at_once(tmp_path: Path) -> None:
    """A write that fails halfway, on a full disk, must not lose the tests."""
    file, other_link = tmp_path / "t.yml", tmp_path / "link.yml"
    file.write_text(TEXT)
    other_link.hardlink_to(file)
    (case,) = load_text("t.yml", TEXT, file, lambda _: {}, filling=True).cases
    (step,) = case.steps
    result = StepResult(step, (0,), None, {"": ({"value": 2},)})
    result = replace(result, differences=find_differences(step.expected, result, case))

    needs_manual_change = _write(file, [(case, Outcome(case, (result,), 0.0))])

    assert not needs_manual_change
    assert file.read_text() == TEXT.replace("value: 1", "value: 2")
    assert other_link.read_text() == TEXT
