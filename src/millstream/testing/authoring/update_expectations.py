"""Update the expectations of a test in its file to the actual results, and change nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.pipeline.load.document import parse_yaml
from millstream.testing.authoring.yaml_edit import TextChange, UnchangeableValue, YamlEditor, apply_changes
from millstream.testing.files.expectation_parser import LETTER
from millstream.testing.runner.compare import is_same_letter_field, pair_rows, value_comparison
from millstream.testing.values.formatting import to_plain
from millstream.testing.values.timestamps import format_timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.pipeline.load.document import Path
    from millstream.testing.model import Case, Row, StepResult
    from millstream.testing.runner.compare import Same


@dataclass
class UpdatedFile:
    """A file's text with updated expectations. `steps` counts updated steps; `left` says what was not updated."""

    text: str
    steps: int = 0
    not_updated: list[str] = field(default_factory=list)


def update_expectations(
    name: str, text: str, results: Sequence[tuple[Case, Sequence[StepResult]]]
) -> UpdatedFile:
    """Return the text of a test file with the expectations of these tests set to the actual results."""
    document = parse_yaml(name, text)
    editor = YamlEditor(document)
    result = UpdatedFile(text)
    changes: list[TextChange] = []
    for case, steps in results:
        path = ("tests", case.name, "steps")
        if path not in document.values:
            if any(step_result.differences for step_result in steps):
                result.not_updated.append(
                    f"'{case.name}' comes from a table, whose rows share their expectations"
                )
            continue
        for number, step_result in enumerate(steps):
            if not step_result.differences:
                continue
            step_path = (*path, number)
            if any(difference.what == "error" for difference in step_result.differences):
                # The steps after an error depend on it.
                result.not_updated.append(f"'{case.name}', step {number + 1}: review the error by hand")
                break
            step = document.data["tests"][case.name]["steps"][number]
            try:
                step_changes = _step_changes(editor, step_path, step, step_result, case)
                editor.refuse_lost_anchors(step_changes)
            except UnchangeableValue as reason:
                result.not_updated.append(f"'{case.name}', step {number + 1}: {reason}")
                continue
            if step_changes:
                changes += step_changes
                result.steps += 1
    result.text = apply_changes(text, changes)
    return result


def _step_changes(
    editor: YamlEditor, path: Path, step: Mapping[str, Any], results: StepResult, case: Case
) -> list[TextChange]:
    """Return the changes of one step."""
    expected, changes = results.step.expected, []
    same = value_comparison(case.tolerance)
    for name, rows in expected.rows.items():
        value_path = (*path, "expect", name) if name else (*path, "expect")
        changes += _row_changes(editor, value_path, rows, results.rows.get(name, ()), same)
    if expected.watermark is not None and results.watermark not in (None, expected.watermark):
        changes.append(editor.set_value((*path, "expect_watermark"), format_timestamp(results.watermark)))
    if expected.dropped not in (None, results.dropped):
        changes.append(editor.set_value((*path, "expect_dropped"), results.dropped))
    value_path = (*path, "expect_state")
    if isinstance(expected.state, int):
        if expected.state != (total := sum(results.state.values())):
            changes.append(editor.set_value(value_path, total))
    elif expected.state is not None:
        for operator, number in expected.state.items():
            if operator not in results.state:
                raise UnchangeableValue(
                    f"there is no operator '{operator}'; the operators are {', '.join(results.state) or 'none'}"
                )
            if results.state[operator] != number:
                changes.append(editor.set_value((*value_path, operator), results.state[operator]))
    value_path = (*path, "expect_dead_letters")
    if isinstance(expected.letters, int):
        if expected.letters != len(results.letters):
            changes.append(editor.set_value(value_path, len(results.letters)))
    elif expected.letters is not None:
        letters = [{name: letter[name] for name in LETTER if name in letter} for letter in results.letters]
        changes += _row_changes(editor, value_path, expected.letters, letters, is_same_letter_field)
    return changes if isinstance(step, dict) else []


def _row_changes(
    editor: YamlEditor, path: Path, expected: Sequence[Row], actual: Sequence[Row], same: Same
) -> list[TextChange]:
    """Return the changes of one list of rows: changed cells, removed rows and added rows."""
    pairing = pair_rows(expected, actual, same)
    if pairing.is_complete:
        return []
    lowered = [{name.lower(): value for name, value in row.items()} for row in actual]
    cells: dict[tuple[int, str], Any] = {}
    removed, added = list(pairing.missing), list(pairing.surplus)
    for expected_index, actual_index in pairing.differing:
        row = lowered[actual_index]
        if any(name.lower() not in row for name in expected[expected_index]):
            # A column no longer exists, so the whole row is written again with the existing columns.
            removed.append(expected_index)
            added.append(actual_index)
            continue
        cells.update(
            {
                (expected_index, name): to_plain(row[name.lower()])
                for name, value in expected[expected_index].items()
                if not same(name, value, row[name.lower()])
            }
        )
    columns = list(dict.fromkeys(name for row in expected for name in row))
    known = [name for name in columns if any(name.lower() in row for row in lowered)]
    rows = [
        {name: to_plain(lowered[number].get(name.lower())) for name in known}
        if known
        else {name: to_plain(value) for name, value in actual[number].items()}
        for number in sorted(added)
    ]
    return editor.rows(path, cells, sorted(removed), rows)
