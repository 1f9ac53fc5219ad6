"""A finding becomes a diagnostic, and its edit a change of the file that the edit names."""

from __future__ import annotations

from pathlib import Path

from millstream.language_server.convert import to_code_action, to_diagnostic
from millstream.language_server.server import edited_uri

EDIT = {"file": "pipeline.yml", "line": 1, "drop": 1, "insert": ["b: 2"], "safe": True}
FINDING = {
    "code": "MS201",
    "severity": "error",
    "message": "it is wrong",
    "why": "",
    "fix": "add a line",
    "file": "views/sums.sql",
    "line": 1,
    "column": 1,
    "end_line": 1,
    "end_column": 7,
    "edit": EDIT,
}


def test_a_fix_in_another_file_changes_that_file() -> None:
    diagnostic = to_diagnostic(FINDING, ["SELECT"])

    assert edited_uri(diagnostic) == Path("pipeline.yml").absolute().as_uri()


def test_a_file_without_a_last_line_ending_keeps_it_so() -> None:
    action = to_code_action("file:///pipeline.yml", to_diagnostic(FINDING, ["SELECT"]), ["a: 1", "b: 1"])

    assert action is not None
    assert action.edit is not None
    assert action.edit.changes is not None
    (change,) = action.edit.changes["file:///pipeline.yml"]
    assert (change.range.start.line, change.range.start.character, change.new_text) == (0, 4, "\nb: 2")
