"""Cells of a notebook that Python cannot read: why, and which names they would have assigned."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.interception.absent import Absent
from millstream.checking.scripts.interception.recording import BrokenCell, Doubt
from millstream.checking.syntax_check import is_notebook

if TYPE_CHECKING:
    from pathlib import Path
    from types import CodeType

    from millstream.checking.scripts.execution.skipped_statements import SkippedStatements
    from millstream.checking.scripts.execution.source_files import CodePart
    from millstream.checking.scripts.interception.recording import Recording

# Lines that only another language has, for each of those that notebooks contain beside Python.
_LANGUAGES = {
    "Scala": r"(?:val|var|lazy val)\s+\w+\s*(?::[^=]+)?=|(?:case class|object|trait)\s+\w+|println\s*\("
    r"|def\s+\w+\s*(?:\(.*\))?\s*(?::\s*[\w\[\], .]+)?\s*=|import\s+[\w.]+\.\{",
    "R": r"[\w.]+\s*<-|library\s*\(",
    "SQL": r"(?i:with\s+\w+\s+as\s*\(|(?:select|create|drop|alter|insert|merge|show|describe|use)\s+[\w*`(])",
    "a shell script": r"(?:sudo|cd|ls|mkdir|rm|cp|mv|cat|echo|export|wget|curl|tar|unzip|git|docker|kafka-\S+"
    r"|apt(?:-get)?|pip3?|python3?|spark-submit|chmod)\s+[\w./$~\"'-]|\S*/bin/\S+|\.{1,2}/\S+",
}
# How Python assigns a name. A cell that cannot be read has no syntax tree.
_ASSIGNED = (
    # An indented one may be an argument of a call.
    re.compile(r"^((?:\w+\s*,\s*)*\w+)\s*(?::[^=\n]+)?=(?!=)", re.MULTILINE),
    re.compile(r"^(?:async\s+)?(?:def|class)\s+(\w+)", re.MULTILINE),
    re.compile(r"\bas\s+(\w+)"),
    re.compile(r"^[ \t]*for\s+((?:\w+\s*,\s*)*\w+)\s+in\b", re.MULTILINE),
    re.compile(r"^[ \t]*import\s+(\w+)", re.MULTILINE),
    re.compile(r"^[ \t]*from\s+[\w.]+\s+import\s+((?:\w+\s*,\s*)*\w+)", re.MULTILINE),
    re.compile(r"^[ \t]*from\s+[\w.]+\s+import\s+\(([^)]*)\)", re.MULTILINE),
)


def compile_part(
    part: CodePart, path: Path, skipped: SkippedStatements, names: dict[str, Any], recording: Recording
) -> CodeType | None:
    """Compile a script, or a cell of a notebook. None for a cell that Python cannot read, which is recorded.

    What such a cell would have assigned is unknown in `names`, which are those of the notebook. Raises SyntaxError
    for a script that Python cannot read.
    """
    try:
        return skipped.compile(part.text, part.file)
    except SyntaxError as error:
        if not is_notebook(path):
            raise
        span = call_sites.line_span(part.file, error.lineno or 1)
        recording.broken_cells.append(BrokenCell(str(error.msg), span, _find_language(part.text)))
        doubt = Doubt("what this cell assigns", "the cell cannot be read", span)
        for name in _list_assigned(part.text):
            names[name] = Absent(recording.doubt(doubt))
        return None


def _find_language(text: str) -> str:
    """Return in which other language a cell is written, "" if it is Python with a mistake."""
    try:
        compile(text, "", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError:
        lines = [line.strip() for line in text.splitlines()]
        foreign = next((line for line in lines if not _is_python(line)), "")
        return next((name for name, pattern in _LANGUAGES.items() if re.match(pattern, foreign)), "")
    return "asynchronous code"


def _is_python(line: str) -> bool:
    """Return whether a line can be one of Python: a statement, or the first line of a block."""
    try:
        ast.parse(f"{line} pass" if line.endswith(":") else line)
    except SyntaxError:
        return False
    return True


def _list_assigned(text: str) -> set[str]:
    """Return the names that a cell would have assigned, as far as its lines tell."""
    groups = [group for pattern in _ASSIGNED for group in pattern.findall(text)]
    return {name.strip() for group in groups for name in group.split(",") if name.strip().isidentifier()}
