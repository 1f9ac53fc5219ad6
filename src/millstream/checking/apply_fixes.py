"""Apply the edits of findings to files, check again, and revert edits that made the result worse."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import NotReady
from millstream.diagnostics.text_patch import apply_edits, format_diff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from millstream.checking.batch_check import CheckReport
    from millstream.diagnostics.finding import Edit, Finding

# An edit may reveal another finding that has an edit too. More rounds than this repeat themselves.
MOST_ROUNDS = 10
# The codes of a spec that cannot be read, of invalid SQL, and of views that Spark cannot analyse.
UNREADABLE = ("MS0", "MS10", "MS11")


@dataclass(frozen=True)
class AppliedFix:
    """An edit that was applied, and the finding that it fixes."""

    finding: Finding
    edit: Edit


@dataclass(frozen=True)
class FixResult:
    """The report after the last edit, and all edits in the order of their application."""

    report: CheckReport
    changes: tuple[AppliedFix, ...]


def fix_findings(report: CheckReport, recheck: Callable[[], CheckReport], *, unsafe: bool) -> FixResult:
    """Apply the edits of a report's findings, only safe ones unless `unsafe`, and check again until none is left.

    Edits that overlap are applied in separate rounds. If a finding remains after a round, or the spec cannot be
    read, the round is reverted and each edit is tried alone. Raises NotReady when a file cannot be written.
    """
    changes: list[AppliedFix] = []
    rejected_edits: set[Edit] = set()
    for _ in range(MOST_ROUNDS):
        waiting = [
            change
            for change in collect_edits(report.checked.findings, unsafe=unsafe)
            if change.edit not in rejected_edits
        ]
        if not waiting:
            break
        applied, report = _try_edits(waiting, report, recheck)
        if not applied and len(waiting) == 1:
            rejected_edits.add(waiting[0].edit)
        elif not applied:
            for candidate in waiting:
                single, report = _try_edits([candidate], report, recheck)
                applied += single
                if single:
                    # The other edits refer to lines that may have moved.
                    break
                rejected_edits.add(candidate.edit)
        changes += applied
    return FixResult(report, tuple(changes))


def collect_edits(findings: Iterable[Finding], *, unsafe: bool) -> list[AppliedFix]:
    """Return the edits of findings without duplicates, only safe ones unless `unsafe`."""
    changes: dict[Edit, AppliedFix] = {}
    for finding in findings:
        if finding.edit is not None and (finding.edit.is_safe or unsafe):
            changes.setdefault(finding.edit, AppliedFix(finding, finding.edit))
    return list(changes.values())


def render_patch(findings: Iterable[Finding], *, unsafe: bool) -> str:
    """Return the changes of the first round of edits as a patch."""
    changes = collect_edits(findings, unsafe=unsafe)
    parts = []
    for name in dict.fromkeys(change.edit.file for change in changes):
        before = _read_file(Path(name))
        after, _ = apply_edits(before, [change.edit for change in changes if change.edit.file == name])
        parts.append(format_diff(name, before, after))
    return "".join(parts)


def _try_edits(
    changes: Sequence[AppliedFix], report: CheckReport, recheck: Callable[[], CheckReport]
) -> tuple[list[AppliedFix], CheckReport]:
    """Apply edits and check again. Revert all of them if the result is worse, or if an error ends the check."""
    before: dict[Path, str] = {}
    applied: list[AppliedFix] = []
    is_better = False
    try:
        for name in dict.fromkeys(change.edit.file for change in changes):
            file = Path(name)
            text = _read_file(file)
            after, edited = apply_edits(text, [change.edit for change in changes if change.edit.file == name])
            if edited:
                before[file] = text
                replace_file(file, after)
                applied += [change for change in changes if change.edit in edited]
        later = recheck() if applied else report
        is_better = _is_better(report, later, applied)
    finally:
        # Also after Ctrl-C, or if Spark does not start: edits that were not checked do not stay.
        if not is_better:
            for file, text in before.items():
                replace_file(file, text)
    return (applied, later) if is_better and applied else ([], report)


def _is_better(before: CheckReport, after: CheckReport, applied: Sequence[AppliedFix]) -> bool:
    """Return whether the fixed findings are gone and the spec can still be read.

    Findings are compared by code and message, because lines move. Errors that other errors hid may appear.
    """
    old, new = (Counter(_identity(entry) for entry in report.checked.findings) for report in (before, after))
    fixed = Counter(_identity(entry.finding) for entry in applied)
    broken = any(code.startswith(UNREADABLE) for code, _ in set(new) - set(old))
    return not broken and all(new[words] <= old[words] - count for words, count in fixed.items())


def _identity(finding: Finding) -> tuple[str, str]:
    return finding.code, finding.message


def _read_file(file: Path) -> str:
    """Return the text unchanged, with its line endings and byte-order mark."""
    try:
        return file.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NotReady(
            f"cannot read {file} to fix it: {error}", "check that the file still exists"
        ) from error


def replace_file(file: Path, text: str) -> None:
    """Replace the file atomically. Its mode stays, and its owner if root does it. Of a link, replace the target."""
    target = file.resolve()
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(text.encode("utf-8"))
            status = target.stat()
            with suppress(OSError):
                os.chown(name, status.st_uid, status.st_gid)
            shutil.copymode(target, name)
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise NotReady(
            f"cannot write {file}: {error.strerror}", "make sure that the folder is writable"
        ) from error
