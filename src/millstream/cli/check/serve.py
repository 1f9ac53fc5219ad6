"""`millstream check --server`: check files on request, in one warm Spark session."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millstream.checking.batch_check import Checker, CheckReport


def serve(checker: Checker, format_reports: Callable[[Sequence[CheckReport]], str]) -> int:
    """Answer each line of stdin, `{"path": …}`, with one line on stdout, until stdin ends. Always returns 0.

    An answer is the JSON of `check` for this file or folder, which `format_reports` gives, or `{"error": …,
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
        answers.write(json.dumps(_check_file(checker, path, format_reports), default=str) + "\n")
        answers.flush()
        unload_modules([path.parent])
    return 0


def _check_file(
    checker: Checker, path: Path, format_reports: Callable[[Sequence[CheckReport]], str]
) -> dict[str, Any]:
    from millstream.checking.targets import find_targets
    from millstream.diagnostics.failure import MillstreamError

    try:
        reports = checker.all(find_targets([path]))
    except MillstreamError as failure:
        return {"error": failure.what, "fix": failure.fix}
    report: dict[str, Any] = json.loads(format_reports(reports))
    return report
