"""A split that differs, written as a test that a file can keep."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import yaml

from millstream.testing import said
from millstream.testing.held import plain
from millstream.testing.moments import written

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.testing.case import Case, Row
    from millstream.testing.held import Gap
    from millstream.testing.splits import Item, Part
    from millstream.testing.trying import Tried

# What a test says besides its steps, in the order in which a person writes it. Its table is filled in by then.
_COPIED = ("query", "now", "params", "set", "static", "tolerance")
# Text that no reader of YAML takes for anything else; all other text is put in quotes.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"})


def kept(
    case: Case, items: Sequence[Item], tried: Tried, own: Mapping[str, Any], *, expecting: bool = True
) -> str:
    """The split as YAML for a test file; the test fails until the pipeline is mended.

    `own` is the test as its file has it, for the parts that a case does not keep. Each step expects what came in
    it, with the rows of the batch answer in place of those that are wrong; a row that is missing stands in the last
    step. Nothing is expected unless `expecting`: of values that differ each time none is right.
    """
    test: dict[str, Any] = {key: own[key] for key in _COPIED if key in own}
    test.setdefault("query", case.query)
    if case.now is not None:
        test["now"] = written(case.now)
    if case.static:
        test["static"] = {name: [said.row(one) for one in rows] for name, rows in case.static.items()}
    fed = {one.number: one for one in items}
    steps = [dict(_step(part, fed)) for part in tried.split]
    if tried.gaps and expecting and len(tried.outcome.played) == len(steps):
        _, gap = tried.gaps[0]
        came = [list(one.rows.get("", ())) for one in tried.outcome.played]
        for step, rows in zip(steps, _mended(came, gap), strict=True):
            step["expect"] = [said.row(one) for one in rows]
    test["steps"] = steps
    return _text({f"{case.name}, in {len(steps)} batches": test})


def _step(part: Part, fed: Mapping[int, Item]) -> Iterator[tuple[str, Any]]:
    if part.restart:
        yield "restart", True
    feed: dict[str, list[Any]] = {}
    for number in part.items:
        feed.setdefault(fed[number].source, []).append(said.fed(fed[number].fed))
    yield "feed", feed
    if part.crash:
        yield "crash", part.crash


def _mended(came: Sequence[Sequence[Row]], gap: Gap) -> list[list[Row]]:
    """What each step should have given: what it gave, without wrong rows, and with right ones in their place."""
    right = {plain(got): wanted for wanted, got in gap.changed}
    surplus = [plain(row) for row in gap.surplus]
    mended: list[list[Row]] = [[] for _ in came]
    for at in range(len(came) - 1, -1, -1):
        for row in came[at]:
            text = plain(row)
            if text in surplus:
                surplus.remove(text)
            else:
                mended[at].append(right.pop(text, row))
    if mended:
        mended[-1] += gap.missing
    return mended


class _Line(dict[str, Any]):
    """A mapping that is written on one line."""


class _Dumper(yaml.SafeDumper):
    """Writes rows on one line each, and text in quotes where a reader could take it for something else."""


def _word(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    bare = _PLAIN.match(text) and text.lower() not in _WORDS
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if bare else '"')


_Dumper.add_representer(str, _word)
_Dumper.add_representer(
    _Line, lambda dumper, held: dumper.represent_mapping("tag:yaml.org,2002:map", held, flow_style=True)
)


def _text(test: dict[str, Any]) -> str:
    return yaml.dump(_lined(test, 0), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000_000)


def _lined(value: Any, depth: int) -> Any:
    """Rows as lines, and dollars doubled, as a test file takes `$$` for one."""
    if isinstance(value, str):
        return value.replace("$", "$$") if depth > 1 else value
    if isinstance(value, Mapping):
        # Below the steps and the static tables, whose own keys are names, stand rows.
        return {name: _lined(one, depth + 1) for name, one in value.items()}
    if isinstance(value, list) and all(isinstance(one, Mapping) and "feed" not in one for one in value):
        return [_Line(_lined(one, depth + 1)) for one in value]
    return [_lined(one, depth + 1) for one in value] if isinstance(value, list) else value
