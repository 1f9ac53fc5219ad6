"""What a step of a test file expects, as values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.testing.case import Expected
from millstream.testing.rows import count, held, kinds, rows, time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.pipeline.document import Path
    from millstream.testing.case import Row
    from millstream.testing.ground import Ground
    from millstream.testing.names import Names

LETTER = ("source", "reason", "value", "topic", "partition", "offset")


def expected(ground: Ground, names: Names, said: Mapping[str, Any], path: Path, *, filling: bool) -> Expected:
    """What must hold after a step."""
    watermark = dropped = error = None
    if "expect_watermark" in said:
        watermark = time(ground, "'expect_watermark'", said["expect_watermark"], (*path, "expect_watermark"))
    if "expect_dropped" in said:
        dropped = count(ground, "'expect_dropped'", said["expect_dropped"], (*path, "expect_dropped"))
    if "expect_error" in said:
        error = said["expect_error"]
        if not isinstance(error, str) or not error:
            ground.not_this("'expect_error'", "a part of the error's text", error, (*path, "expect_error"))
            error = None
    return Expected(
        rows=_wanted(ground, names, said["expect"], (*path, "expect"), filling=filling)
        if "expect" in said
        else {},
        watermark=watermark,
        dropped=dropped,
        state=_state(ground, said["expect_state"], (*path, "expect_state"))
        if "expect_state" in said
        else None,
        letters=_letters(ground, said["expect_dead_letters"], (*path, "expect_dead_letters"))
        if "expect_dead_letters" in said
        else None,
        error=error,
    )


def _wanted(
    ground: Ground, names: Names, value: Any, path: Path, *, filling: bool
) -> dict[str, tuple[Row, ...]]:
    """The expected rows: of the query, or by name."""
    if value is None and filling:
        return {"": ()}
    if isinstance(value, list):
        return {"": _of(ground, names, "", value, path, filling=filling)}
    if isinstance(value, dict):
        return {
            name: _of(ground, names, name, items, (*path, name), filling=filling)
            for name, items in value.items()
        }
    fix = "write rows, or [] for none; 'millstream test --update' writes them" if value is None else ""
    ground.not_this("'expect'", "a list of rows, or such lists by name", value, path, fix)
    return {}


def _of(ground: Ground, names: Names, name: str, value: Any, path: Path, *, filling: bool) -> tuple[Row, ...]:
    """The expected rows of one name; those of a source are held against its columns."""
    if value is None and filling:
        return ()
    found = rows(ground, f"'{name}'" if name else "'expect'", value, path)
    if names.pipeline is None or names.query is None:
        return found
    if name and name not in (known := [*names.behind, *names.sinks]) and not names.blind:
        ground.absent(f"query '{names.query}' has no view, source or sink '{name}'", name, known, path)
    entry = names.pipeline.sources.get(name or names.written)
    if entry is not None:
        types, who = kinds(entry), f"source '{name or names.written}'"
        for number, row in enumerate(value if isinstance(value, list) else ()):
            if isinstance(row, dict):
                held(ground, who, types, dict.fromkeys(row), (*path, number))
    return found


def _state(ground: Ground, value: Any, path: Path) -> dict[str, int] | int | None:
    if not isinstance(value, dict):
        return count(ground, "'expect_state'", value, path)
    found = {
        name: count(ground, f"the state of '{name}'", many, (*path, name)) for name, many in value.items()
    }
    return {name: many for name, many in found.items() if many is not None}


def _letters(ground: Ground, value: Any, path: Path) -> tuple[Row, ...] | int | None:
    if not isinstance(value, list):
        if isinstance(value, int):
            return count(ground, "'expect_dead_letters'", value, path)
        ground.not_this("'expect_dead_letters'", "a number, or a list of rows", value, path)
        return None
    found = rows(ground, "'expect_dead_letters'", value, path)
    for number, row in enumerate(value):
        for column in row if isinstance(row, dict) else ():
            if column not in LETTER:
                message = f"a dead letter has no '{column}' to compare"
                ground.absent(message, column, LETTER, (*path, number, column))
    return found
