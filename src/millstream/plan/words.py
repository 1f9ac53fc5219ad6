"""Words that several judgements share."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

FRESH = "give the query a new checkpoint and recompute its past: 'millstream plan --apply'"
_WORD_START = re.compile(r"(?<=[a-z])(?=[A-Z])")


def name_kind(change: object) -> str:
    """Return the name of a kind of change, such as `window_changed`."""
    return _WORD_START.sub("_", type(change).__name__).lower()


def join_words(words: Sequence[str]) -> str:
    """Join words by commas, and by `none` if there are none."""
    return ", ".join(words) or "none"


def phrase_difference(added: Sequence[str], removed: Sequence[str]) -> str:
    """Say what was added and what was removed."""
    parts = []
    if added:
        parts.append(f"new: {'; '.join(added)}")
    if removed:
        parts.append(f"gone: {'; '.join(removed)}")
    return ", ".join(parts)
