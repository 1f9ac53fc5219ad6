"""`millstream check --server`: check files on request, in one warm Spark session."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.cli.check.reports import format_reports

if TYPE_CHECKING:
    from millstream.checking.batch_check import Checker


def serve(checker: Checker) -> int:
    """Answer each line of stdin, `{"path": …}`, with one line on stdout, until stdin ends. Always returns 0.

    An answer is the JSON of `check` for this file or folder, with the edits of all findings, or `{"error": …,
    "fix": …}`. Scripts that are checked can neither read the requests nor write among the answers.
    """
    from millstream.checking.file_watch import unload_modules

    requests = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - open as long as the process
    for line in requests:
        path = Path(json.loads(line)["path"])
        answers.write(json.dumps(check_file(checker, path), default=str) + "\n")
        answers.flush()
        unload_modules([path.parent])
    return 0


def check_file(checker: Checker, path: Path) -> dict[str, Any]:
    """Return the answer about a file or folder."""
    from millstream.checking.targets import find_targets
    from millstream.diagnostics.failure import MillstreamError
    from millstream.diagnostics.formats import edit_to_json

    try:
        reports = checker.all(find_targets([path]))
    except MillstreamError as failure:
        return {"error": failure.what, "fix": failure.fix}
    document: dict[str, Any] = json.loads(format_reports(reports, "json"))
    findings = [finding for report in reports for finding in report.checked.findings]
    for item, finding in zip(document["findings"], findings, strict=True):
        # The editor writes the lines of an edit into the file, so secrets in them stay as they are.
        item["edit"] = edit_to_json(finding.edit)
    return document
