"""A finding: one thing that is wrong, where it stands, why it matters and what cures it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a finding matters. An `ERROR` refuses to start the pipeline."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, order=True)
class Span:
    """A stretch of text in a file.

    Lines and columns count from 1; `end_column` is the first column after the stretch.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    @classmethod
    def point(cls, file: str, line: int = 1, column: int = 1) -> Span:
        """One character of a file."""
        return cls(file, line, column, line, column + 1)


@dataclass(frozen=True)
class Edit:
    """A change of text that cures a finding: the lines to put in, after `line` of `file` (0: at the top).

    The `drop` lines that stand there go. A safe edit never changes what a right pipeline gives.
    """

    file: str
    line: int
    insert: tuple[str, ...]
    drop: int = 0
    safe: bool = True


@dataclass(frozen=True)
class Finding:
    """One diagnostic.

    `message` is one sentence without a full stop. `label` stands under the marked text. `fix` begins with a
    verb. `query` names the query it concerns, where there is one.
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


def worst(findings: list[Finding]) -> Severity | None:
    """The gravest severity among findings, or None when there are none."""
    order = [Severity.ERROR, Severity.WARNING, Severity.INFO]
    found = {finding.severity for finding in findings}
    return next((severity for severity in order if severity in found), None)
