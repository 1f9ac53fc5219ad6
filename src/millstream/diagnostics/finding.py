"""A finding: a problem, its position, its reason and its fix."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """The severity of a finding. An `ERROR` prevents the pipeline from starting."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, order=True)
class Span:
    """A range of text in a file.

    Lines and columns count from 1; `end_column` is the first column after the range.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    @classmethod
    def point(cls, file: str, line: int = 1, column: int = 1) -> Span:
        """Return the span of one character of a file."""
        return cls(file, line, column, line, column + 1)


@dataclass(frozen=True)
class Edit:
    """A text change that fixes a finding: the lines to insert after `line` of `file` (0: at the top).

    The next `drop` lines are deleted. A safe edit never changes the result of a correct pipeline.
    """

    file: str
    line: int
    insert: tuple[str, ...]
    drop: int = 0
    is_safe: bool = True


@dataclass(frozen=True)
class Finding:
    """One diagnostic.

    `message` is one sentence without a full stop. `label` is printed under the marked text. `fix` begins with a
    verb. `query` names the affected query, if any.
    """

    code: str
    name: str
    severity: Severity
    message: str
    span: Span | None = None
    label: str = ""
    why: str = ""
    fix: str = ""
    edit: Edit | None = None
    query: str | None = None
