"""Export a failing split as YAML for a test file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import yaml

from millstream.testing.files import serializer
from millstream.testing.shuffle.sink_contents import to_comparable
from millstream.testing.values.timestamps import format_timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.testing.model import Case, Row
    from millstream.testing.shuffle.sink_contents import ContentDifference
    from millstream.testing.shuffle.splits import Item, SplitBatch
    from millstream.testing.shuffle.trial import TrialResult

# The keys of a test besides its steps, in the usual order. Placeholders of a table are already replaced.
_COPIED_KEYS = ("query", "now", "params", "set", "static", "tolerance")
# Text that every YAML parser reads as a string. All other text is quoted.
_UNQUOTED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_RESERVED_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"})


def export_split(
    case: Case,
    items: Sequence[Item],
    trial: TrialResult,
    written_test: Mapping[str, Any],
    *,
    expecting: bool = True,
) -> str:
    """Return the split as YAML for a test file. The test fails until the pipeline is fixed.

    `written_test` is the test in its file, for the keys that a case does not store. Each step expects its actual
    output, with wrong rows replaced by those of the batch result. Missing rows are expected in the last step. Without
    `expecting`, the test has no expectations, because values that differ on each computation have no right value.
    """
    test: dict[str, Any] = {key: written_test[key] for key in _COPIED_KEYS if key in written_test}
    test.setdefault("query", case.query)
    if case.now is not None:
        test["now"] = format_timestamp(case.now)
    if case.static:
        test["static"] = {
            name: [serializer.serialize_row(item) for item in rows_of_step]
            for name, rows_of_step in case.static.items()
        }
    items_by_number = {item.number: item for item in items}
    steps = [dict(_step_entries(part, items_by_number)) for part in trial.split]
    if trial.gaps and expecting and len(trial.outcome.results) == len(steps):
        _, gap = trial.gaps[0]
        actual_rows = [list(item.rows.get("", ())) for item in trial.outcome.results]
        for step, rows_of_step in zip(steps, _corrected_rows(actual_rows, gap), strict=True):
            step["expect"] = [serializer.serialize_row(item) for item in rows_of_step]
    test["steps"] = steps
    return _to_yaml({f"{case.name}, in {len(steps)} batches": test})


def _step_entries(part: SplitBatch, items_by_number: Mapping[int, Item]) -> Iterator[tuple[str, Any]]:
    if part.has_restart:
        yield "restart", True
    feed: dict[str, list[Any]] = {}
    for number in part.items:
        feed.setdefault(items_by_number[number].source, []).append(
            serializer.serialize_feed_item(items_by_number[number].record)
        )
    yield "feed", feed
    if part.crash:
        yield "crash", part.crash


def _corrected_rows(actual_rows: Sequence[Sequence[Row]], gap: ContentDifference) -> list[list[Row]]:
    """Return the correct output of each step: its actual output, with wrong rows removed or replaced."""
    right_rows = {to_comparable(actual): expected for expected, actual in gap.changed}
    surplus = [to_comparable(row) for row in gap.surplus]
    corrected: list[list[Row]] = [[] for _ in actual_rows]
    for index in range(len(actual_rows) - 1, -1, -1):
        for row in actual_rows[index]:
            comparable = to_comparable(row)
            if comparable in surplus:
                surplus.remove(comparable)
            else:
                corrected[index].append(right_rows.pop(comparable, row))
    if corrected:
        corrected[-1] += gap.missing
    return corrected


class _InlineMapping(dict[str, Any]):
    """A mapping that is written on one line in YAML."""


class _Dumper(yaml.SafeDumper):
    """Writes each row on one line, and quotes text that a YAML parser could read as another type."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    is_unquoted = _UNQUOTED.match(text) and text.lower() not in _RESERVED_WORDS
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if is_unquoted else '"')


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(
    _InlineMapping,
    lambda dumper, mapping: dumper.represent_mapping("tag:yaml.org,2002:map", mapping, flow_style=True),
)


def _to_yaml(test: dict[str, Any]) -> str:
    return yaml.dump(_prepare(test, 0), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000_000)


def _prepare(value: Any, depth: int) -> Any:
    """Mark rows as inline mappings, and double dollar signs, because a test file reads `$$` as one."""
    if isinstance(value, str):
        return value.replace("$", "$$") if depth > 1 else value
    if isinstance(value, Mapping):
        # Rows are nested below steps and static tables, whose own keys are names.
        return {name: _prepare(item, depth + 1) for name, item in value.items()}
    if isinstance(value, list) and all(isinstance(item, Mapping) and "feed" not in item for item in value):
        return [_InlineMapping(_prepare(item, depth + 1)) for item in value]
    return [_prepare(item, depth + 1) for item in value] if isinstance(value, list) else value
