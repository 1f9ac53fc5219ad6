"""Find what makes a script unreadable, without Spark and without running it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.python.parsing import parse_python
from millstream.diagnostics.finding import Span
from millstream.diagnostics.spec_codes import build_finding
from millstream.pipeline.spec_file import display_path

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.diagnostics.finding import Finding

# How Databricks and Microsoft Fabric begin a notebook that they export as Python.
EXPORTS = ("# Databricks notebook source", "# Fabric notebook source")


def is_notebook(path: Path) -> bool:
    """Return whether a file is a notebook: Jupyter's, or one that Databricks or Fabric has exported as Python."""
    if path.suffix == ".ipynb":
        return True
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            return file.readline().startswith(EXPORTS)
    except OSError:
        return False


def find_syntax_error(path: Path) -> Finding | None:
    """Return the finding for a Python file that Python cannot read; None for every other file.

    Notebooks are left out, because their other cells can be checked.
    """
    if path.suffix != ".py" or is_notebook(path):
        return None
    try:
        parse_python(path.read_bytes(), str(path))
    except SyntaxError as error:
        name, line = str(display_path(path)), error.lineno or 1
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        text = lines[line - 1] if line <= len(lines) else ""
        start = len(text) - len(text.lstrip())
        span = Span(name, line, start + 1, line, max(len(text.rstrip()), start + 1) + 1)
        fix = _PYTHON_2 if "Missing parentheses in call to 'print'" in str(error.msg) else ""
        return build_finding("MS114", f"the script cannot be read: {error.msg}", span, fix=fix)
    except (OSError, ValueError, RecursionError):
        # The run of the script says what is wrong.
        return None
    return None


_PYTHON_2 = "the script is written for Python 2, but Spark needs Python 3"
