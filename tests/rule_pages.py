"""Run the pages of codes as tests: each `yaml` block must give exactly the findings in its comments.

A comment `# error: [MS201]`, `# warning: […]` or `# info: […]` (`--` in SQL) is on the line of its finding. A
block `python transforms.py` (any language, then a path) makes that file for the `yaml` blocks below it; a block of
Python without a name that starts a query is a script, checked as it is. A `snapshot` block shows the findings of the
block above it; `UPDATE_SNAPSHOTS=1 pytest` rewrites it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.analysis.rule_runner import load_rules
from millstream.checking.check import CheckResult, check
from millstream.diagnostics.finding import Severity
from millstream.diagnostics.render import render
from millstream.diagnostics.spec_codes import CODES
from millstream.pipeline.spec_file import load_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

SPEC, SCRIPT = "pipeline.yml", "job.py"
_BLOCK = re.compile(r"^```(?P<word>\w+)(?: (?P<file>\S+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r" *(?:#|--) (?P<severity>error|warning|info): (?P<codes>(?:\[MS\d{3}\] ?)+)")
# A block of Python that creates its session is a complete script; others are parts of one.
_SCRIPT = re.compile(r"SparkSession\b.*\.writeStream\b", re.DOTALL)
_CODE = re.compile(r"MS\d{3}")

# A finding as a comment gives it: file, line, severity, code.
TextMark = tuple[str, int, str, str]


@dataclass(frozen=True)
class Block:
    """One pipeline of a page; `section` is the heading above it, empty before the first heading."""

    page: Path
    number: int
    line: int
    section: str
    spec: str
    snapshot: str | None
    files: Mapping[str, str]
    file: str = SPEC

    @property
    def expected_marks(self) -> list[TextMark]:
        """The findings in its comments."""
        texts = {self.file: self.spec, **self.files}
        return sorted(mark for file, text in texts.items() for mark in _parse_marks(file, text))

    @property
    def fails(self) -> bool:
        """Return whether its comments contain a finding."""
        return bool(self.expected_marks)


def read(page: Path) -> list[Block]:
    """Read the pipelines of a page, in order."""
    text = page.read_text(encoding="utf-8")
    actual: list[Block] = []
    files: dict[str, str] = {}
    blocks = list(_BLOCK.finditer(text))
    for number, block in enumerate(blocks):
        match = re.match(r"# (\w+\.py)\n", block["text"]) if block["word"] == "python" else None
        if name := block["file"] or (match and match[1]):
            files[name] = block["text"]
        elif block["word"] == "yaml" or (block["word"] == "python" and _SCRIPT.search(block["text"])):
            after = blocks[number + 1] if number + 1 < len(blocks) else None
            item = after["text"] if after and after["word"] == "snapshot" else None
            section = (re.findall(r"^## (.*)$", text[: block.start()], re.MULTILINE) or [""])[-1]
            line = text.count("\n", 0, block.start()) + 1
            kind = SPEC if block["word"] == "yaml" else SCRIPT
            actual.append(Block(page, len(actual) + 1, line, section, block["text"], item, dict(files), kind))
    return actual


def judge(block: Block, folder: Path, spark: SparkSession | None) -> CheckResult:
    """Check a block as a spec or a script of that folder, which must be the working folder."""
    write(block, folder)
    if block.file == SCRIPT:
        # Imported here because pages of specs are checked without PySpark.
        from millstream.checking.scripts.check import check_script

        assert spark is not None, "a script is run, and asks Spark for what it reads"
        return check_script(spark, folder / SCRIPT)
    return check(load_text(SPEC, (folder / SPEC).read_text(encoding="utf-8"), folder, {}), spark)


def write(block: Block, folder: Path) -> None:
    """Put a block and its files into a folder, without their comments."""
    for name, text in {**block.files, block.file: block.spec}.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_COMMENT.sub("", text), encoding="utf-8")


def compare(block: Block, checked: CheckResult, *, planned: bool) -> None:
    """Assert that the findings are those in the comments; without plans, skip the codes that need one."""
    left_out = set() if planned else of_plans()
    got = [mark for mark in _list_marks(checked) if mark[3] not in left_out]
    expected = [mark for mark in block.expected_marks if mark[3] not in left_out]
    text = render(checked.findings, checked.texts)

    assert got == expected, f"\n{text}"
    if block.snapshot is None or len(expected) < len(block.expected_marks):
        return
    if os.environ.get("UPDATE_SNAPSHOTS") and text != block.snapshot:
        page = block.page.read_text(encoding="utf-8")
        word = "yaml" if block.file == SPEC else "python"
        before = f"```{word}\n{block.spec}```\n\n```snapshot\n"
        page = page.replace(f"{before}{block.snapshot}```", f"{before}{text}```")
        block.page.write_text(page, encoding="utf-8")
        return
    assert text == block.snapshot


def of_plans() -> set[str]:
    """Return the codes that are found only with a Spark session."""
    return {code for code, rule in load_rules().items() if rule.judge} | {
        code for code in CODES if code > "MS1"
    }


def is_refused(checked: CheckResult) -> bool:
    """Return whether Spark itself refused the pipeline."""
    return any(finding.severity is Severity.ERROR for finding in checked.verdict)


def _list_marks(checked: CheckResult) -> list[TextMark]:
    return sorted(
        (
            finding.span.file if finding.span else SPEC,
            finding.span.line if finding.span else 0,
            finding.severity.value,
            finding.code,
        )
        for finding in checked.findings
    )


def _parse_marks(file: str, text: str) -> Iterator[TextMark]:
    for number, line in enumerate(text.splitlines(), 1):
        for comment in _COMMENT.finditer(line):
            for code in _CODE.findall(comment["codes"]):
                yield file, number, comment["severity"], code
