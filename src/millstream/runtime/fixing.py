"""Apply the edits of findings to files, check again, and take back what made anything worse."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import NotReady
from millstream.diagnostics.patch import patched, unified

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from millstream.diagnostics.finding import Edit, Finding
    from millstream.runtime.checker import Report

# An edit may bring another finding to light whose edit comes next; more rounds than this go in circles.
MOST_ROUNDS = 10
# The codes of a spec that cannot be read, of SQL without sense, and of views that Spark cannot make.
UNREADABLE = ("MS0", "MS10", "MS11")


@dataclass(frozen=True)
class Change:
    """An edit that was made, and the finding it cures."""

    finding: Finding
    edit: Edit


@dataclass(frozen=True)
class Fixed:
    """The report after the last edit, and all edits in the order they were made."""

    report: Report
    changes: tuple[Change, ...]


def fix(report: Report, again: Callable[[], Report], *, unsafe: bool) -> Fixed:
    """Make the edits of a report's findings, safe ones only unless `unsafe`, and check again until none is left.

    Edits that overlap are made one round after the other. A round after which a finding is still there, or the
    spec cannot be read, is taken back and tried edit by edit. Raises NotReady when a file cannot be written.
    """
    changes: list[Change] = []
    refused: set[Edit] = set()
    for _ in range(MOST_ROUNDS):
        waiting = [one for one in edits(report.checked.findings, unsafe=unsafe) if one.edit not in refused]
        if not waiting:
            break
        made, report = _try(waiting, report, again)
        if not made and len(waiting) == 1:
            refused.add(waiting[0].edit)
        elif not made:
            for change in waiting:
                alone, report = _try([change], report, again)
                made += alone
                if alone:
                    # The others speak of lines that may have moved.
                    break
                refused.add(change.edit)
        changes += made
    return Fixed(report, tuple(changes))


def edits(findings: Iterable[Finding], *, unsafe: bool) -> list[Change]:
    """The edits of findings, each once, the safe ones only unless `unsafe`."""
    found: dict[Edit, Change] = {}
    for one in findings:
        if one.edit is not None and (one.edit.safe or unsafe):
            found.setdefault(one.edit, Change(one, one.edit))
    return list(found.values())


def difference(findings: Iterable[Finding], *, unsafe: bool) -> str:
    """What the first round of edits would change, as a patch."""
    changes = edits(findings, unsafe=unsafe)
    parts = []
    for name in dict.fromkeys(change.edit.file for change in changes):
        before = _read(Path(name))
        after, _ = patched(before, [change.edit for change in changes if change.edit.file == name])
        parts.append(unified(name, before, after))
    return "".join(parts)


def _try(
    changes: Sequence[Change], report: Report, again: Callable[[], Report]
) -> tuple[list[Change], Report]:
    """Make edits and check again; all of them, or none when it came out worse."""
    before: dict[Path, str] = {}
    made: list[Change] = []
    for name in dict.fromkeys(change.edit.file for change in changes):
        file = Path(name)
        text = _read(file)
        after, edited = patched(text, [change.edit for change in changes if change.edit.file == name])
        if edited:
            before[file] = text
            _write(file, after)
            made += [change for change in changes if change.edit in edited]
    if not made:
        return [], report
    later = again()
    if _better(report, later, made):
        return made, later
    for file, text in before.items():
        _write(file, text)
    return [], report


def _better(before: Report, after: Report, made: Sequence[Change]) -> bool:
    """Is what was edited gone, and can the spec still be read?

    A finding is known by its words, for lines move. Errors of rules may come to light that others hid.
    """
    old, new = (Counter(_words(one) for one in report.checked.findings) for report in (before, after))
    cured = Counter(_words(one.finding) for one in made)
    broken = any(code.startswith(UNREADABLE) for code, _ in set(new) - set(old))
    return not broken and all(new[words] <= old[words] - count for words, count in cured.items())


def _words(found: Finding) -> tuple[str, str]:
    return found.code, found.message


def _read(file: Path) -> str:
    """The text with every byte in it: neither line endings nor a byte-order mark are touched."""
    try:
        return file.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as failed:
        raise NotReady(
            f"{file} cannot be read to be fixed: {failed}", "see whether it is still there"
        ) from failed


def _write(file: Path, text: str) -> None:
    """Replace the file in one step, its mode kept; through a link, what it points to."""
    place = file.resolve()
    try:
        handle, name = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(text.encode("utf-8"))
            shutil.copymode(place, name)
            Path(name).replace(place)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as failed:
        raise NotReady(
            f"{file} cannot be changed: {failed.strerror}", "see to it that the folder can be written"
        ) from failed
