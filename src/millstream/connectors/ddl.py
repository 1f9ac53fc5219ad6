"""Spark's types as DDL, taken apart: `map<string,struct<at:timestamp>>`; names as SQL takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

NESTED = ("array", "map", "struct")


def quoted(name: str) -> str:
    """A name that SQL takes as it is."""
    return f"`{name.replace('`', '``')}`"


def outer(ddl: str) -> str:
    """The type's own name without what is inside or behind it: `map`, `decimal`, `time`.

    `interval` is Spark's interval of months, days and microseconds; one that names its units is `span`.
    """
    if ddl.lower().startswith("interval "):
        return "span"
    return ddl.partition("<")[0].partition("(")[0].partition(" ")[0].lower()


def within(ddl: str) -> Iterator[str]:
    """The names of a type and of all types inside it, the outermost first."""
    kind = outer(ddl)
    yield kind
    if kind in NESTED and "<" in ddl:
        for part in _parts(ddl[ddl.index("<") + 1 : -1]):
            yield from within(part.partition(":")[2] if kind == "struct" else part)


def _parts(text: str) -> Iterator[str]:
    """A text cut at the commas that stand in no bracket."""
    depth, start = 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    if text:
        yield text[start:]
