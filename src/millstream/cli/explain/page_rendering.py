"""Render a Markdown page: with headings and boxes on a terminal, as plain Markdown elsewhere."""

from __future__ import annotations

import re
import sys

import click

from millstream.cli.project import use_colors

# Marks by which the tests of a page know what each block must give.
_EXPECTED = re.compile(r"[ \t]*(?:--|#) (?:error|warning|info):(?: \[[^\]\n]*\])+")


def page_for_readers(text: str) -> str:
    """Return the page of a code without the marks of its tests."""
    text = _EXPECTED.sub("", text)
    return text.replace("```snapshot\n", "```text\n")


def print_page(text: str) -> None:
    """Print a page to stdout."""
    if not sys.stdout.isatty():
        click.echo(text, nl=False)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(no_color=not use_colors(sys.stdout))
    console.width = min(console.width, 110)
    console.print(Markdown(text, hyperlinks=False))
