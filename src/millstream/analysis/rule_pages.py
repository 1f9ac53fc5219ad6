"""The documentation pages of codes: their files, and what they say about Spark's own behaviour."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache
from pathlib import Path

import millstream.analysis.rules as rules
import millstream.diagnostics as diagnostics


class SparkBehaviour(StrEnum):
    """Spark's own behaviour for the failing pipeline of a page."""

    NOTHING = "starts the faulty query without an error"
    REFUSES = "refuses to start the faulty query"
    FAILS = "starts the faulty query, which fails while it runs"


_LAST_LINE = re.compile(rf"^\*Spark itself (?P<says>{'|'.join(SparkBehaviour)})\.\*$")


@cache
def find_pages() -> dict[str, Path]:
    """Return the page file of each code: next to the rule, or in `diagnostics/pages`."""
    files = [*Path(rules.__path__[0]).glob("ms*.md"), *Path(diagnostics.__path__[0], "pages").glob("ms*.md")]
    return {file.name[:5].upper(): file for file in sorted(files, key=lambda file: file.name)}


@cache
def read_page(code: str) -> str | None:
    """Return the text of a code's page, or `None` if it has no page."""
    file = find_pages().get(code)
    return file.read_text(encoding="utf-8") if file else None


def parse_spark_behaviour(text: str) -> SparkBehaviour | None:
    """Return Spark's behaviour as the last line of a page gives it; `None` if the line has another form."""
    last_line = text.rstrip("\n").rpartition("\n")[2]
    match = _LAST_LINE.match(last_line)
    return SparkBehaviour(match["says"]) if match else None


def is_refused_by_spark(code: str) -> bool:
    """Return whether Spark itself refuses to start such a pipeline, according to the code's page."""
    text = read_page(code)
    return text is not None and parse_spark_behaviour(text) is SparkBehaviour.REFUSES
