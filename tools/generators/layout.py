"""What generated pages share: where they lie, what stands at their top, how text is put together."""

from __future__ import annotations

import inspect
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "millstream"
OUT = Path("docs/reference")
MADE = "<!-- Written by tools/generate.py from the code; edit there. -->"


def summary(one: type) -> str:
    """A class's docstring as paragraphs."""
    return inspect.cleandoc(one.__doc__ or "")


def escaped(text: str) -> str:
    """Text that may stand in a cell of a table."""
    return text.replace("|", "\\|")


def joined(parts: list[str]) -> str:
    """Paragraphs as one page."""
    return "\n\n".join(part for part in parts if part) + "\n"
