"""Look up the terms of the glossary, which is a Markdown page next to this module."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_SECTION = re.compile(r"^## (?P<term>.+)\n\n(?P<text>(?:(?!^## ).*\n?)*)", re.MULTILINE)


def read_glossary() -> str:
    """Return the page."""
    return Path(__file__).with_suffix(".md").read_text(encoding="utf-8")


@cache
def read_terms() -> dict[str, str]:
    """Return the text of each term, in alphabetical order."""
    return {match["term"]: match["text"].strip() for match in _SECTION.finditer(read_glossary())}


def find_term(word: str) -> str | None:
    """Return the term that a word means: in any case, with hyphens or underscores, in the plural; None if none."""
    terms = {_normalize(term): term for term in read_terms()}
    normalized = _normalize(word)
    return terms.get(normalized) or terms.get(normalized.removesuffix("s"))


def _normalize(word: str) -> str:
    return re.sub(r"[\s_-]+", " ", word.strip().lower())
