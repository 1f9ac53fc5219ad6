"""Parse the expectations of a test step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.testing.files.row_parser import check_row, column_types, parse_count, parse_rows, parse_time
from millstream.testing.model import Expected

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.pipeline.load.document import Path
    from millstream.testing.files.parse_context import ParseContext
    from millstream.testing.files.scope import KnownNames
    from millstream.testing.model import Row

LETTER = ("source", "reason", "value", "topic", "partition", "offset")


def parse_expectations(
    ground: ParseContext, names: KnownNames, settings: Mapping[str, Any], path: Path, *, filling: bool
) -> Expected:
    """Parse the expectations of a step into an `Expected` value."""
    watermark = dropped = error = None
    if "expect_watermark" in settings:
        watermark = parse_time(
            ground, "'expect_watermark'", settings["expect_watermark"], (*path, "expect_watermark")
        )
    if "expect_dropped" in settings:
        dropped = parse_count(
            ground, "'expect_dropped'", settings["expect_dropped"], (*path, "expect_dropped")
        )
    if "expect_error" in settings:
        error = settings["expect_error"]
        if not isinstance(error, str) or not error:
            ground.add_type_finding(
                "'expect_error'", "a part of the error's text", error, (*path, "expect_error")
            )
            error = None
    return Expected(
        rows=_parse_expected_rows(ground, names, settings["expect"], (*path, "expect"), filling=filling)
        if "expect" in settings
        else {},
        watermark=watermark,
        dropped=dropped,
        state=_parse_state(ground, settings["expect_state"], (*path, "expect_state"))
        if "expect_state" in settings
        else None,
        letters=_parse_dead_letters(ground, settings["expect_dead_letters"], (*path, "expect_dead_letters"))
        if "expect_dead_letters" in settings
        else None,
        error=error,
    )


def _parse_expected_rows(
    ground: ParseContext, names: KnownNames, value: Any, path: Path, *, filling: bool
) -> dict[str, tuple[Row, ...]]:
    """Parse the expected rows: a list for the query, or lists by name."""
    if value is None and filling:
        return {"": ()}
    if isinstance(value, list):
        return {"": _parse_named_rows(ground, names, "", value, path, filling=filling)}
    if isinstance(value, dict):
        return {
            name: _parse_named_rows(ground, names, name, items, (*path, name), filling=filling)
            for name, items in value.items()
        }
    fix = "write rows, or [] for none; 'millstream test --update' fills them in" if value is None else ""
    ground.add_type_finding("'expect'", "a list of rows, or such lists by name", value, path, fix)
    return {}


def _parse_named_rows(
    ground: ParseContext, names: KnownNames, name: str, value: Any, path: Path, *, filling: bool
) -> tuple[Row, ...]:
    """Parse the expected rows of one name. Rows of a source are checked against its columns."""
    if value is None and filling:
        return ()
    parsed = parse_rows(ground, f"'{name}'" if name else "'expect'", value, path)
    if names.pipeline is None or names.query is None:
        return parsed
    if name and name not in (known := [*names.behind, *names.sinks]) and not names.may_read_unknown:
        ground.absent(f"query '{names.query}' has no view, source or sink '{name}'", name, known, path)
    entry = names.pipeline.sources.get(name or names.query_input)
    if entry is not None:
        types, label = column_types(entry), f"source '{name or names.query_input}'"
        for number, row in enumerate(value if isinstance(value, list) else ()):
            if isinstance(row, dict):
                check_row(ground, label, types, dict.fromkeys(row), (*path, number))
    return parsed


def _parse_state(ground: ParseContext, value: Any, path: Path) -> dict[str, int] | int | None:
    if not isinstance(value, dict):
        return parse_count(ground, "'expect_state'", value, path)
    counts = {
        name: parse_count(ground, f"the state of '{name}'", number, (*path, name))
        for name, number in value.items()
    }
    return {name: number for name, number in counts.items() if number is not None}


def _parse_dead_letters(ground: ParseContext, value: Any, path: Path) -> tuple[Row, ...] | int | None:
    if not isinstance(value, list):
        if isinstance(value, int):
            return parse_count(ground, "'expect_dead_letters'", value, path)
        ground.add_type_finding("'expect_dead_letters'", "a number, or a list of rows", value, path)
        return None
    parsed = parse_rows(ground, "'expect_dead_letters'", value, path)
    for number, row in enumerate(value):
        for column in row if isinstance(row, dict) else ():
            if column not in LETTER:
                message = f"a dead letter has no '{column}' to compare"
                ground.absent(message, column, LETTER, (*path, number, column))
    return parsed
