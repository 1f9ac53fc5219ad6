"""The pages of codes, which lie in the package: where each is, and what it says of Spark's own verdict."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache
from pathlib import Path

import millstream.analysis.rules as rules
import millstream.diagnostics as diagnostics


class Says(StrEnum):
    """What Spark itself does with the pipeline that a page shows as failing."""

    NOTHING = "says nothing"
    REFUSES = "refuses it at start"
    FAILS = "fails while it runs"


_LAST = re.compile(
    rf"^\*Spark itself (?P<says>{'|'.join(Says)})\. Catalogue: (?P<ids>[A-Z]+\d+(?:, [A-Z]+\d+)*)\.\*$"
)
_LAST_OURS = re.compile(rf"^\*Spark itself (?P<says>{'|'.join(Says)})\.\*$")


@cache
def pages() -> dict[str, Path]:
    """The file of each code's page: beside the rule, or among the pages of the catalogue."""
    found = [*Path(rules.__path__[0]).glob("ms*.md"), *Path(diagnostics.__path__[0], "pages").glob("ms*.md")]
    return {file.name[:5].upper(): file for file in sorted(found, key=lambda file: file.name)}


@cache
def page(code: str) -> str | None:
    """The text of a code's page, or None where there is none."""
    file = pages().get(code)
    return file.read_text(encoding="utf-8") if file else None


def says(text: str) -> Says | None:
    """What a page's last line says that Spark does; None when the line is not of its form.

    The line names ids of the catalogue of findings where the rule answers one: `Catalogue: N24, SP011.`
    """
    last = text.rstrip("\n").rpartition("\n")[2]
    found = _LAST.match(last) or _LAST_OURS.match(last)
    return Says(found["says"]) if found else None


def refused(code: str) -> bool:
    """Does Spark itself refuse to start what this code finds, as its page says?"""
    text = page(code)
    return text is not None and says(text) is Says.REFUSES
