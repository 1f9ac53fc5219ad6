"""The page about scripts shows what a check really says."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.checking.scripts.check import check_script
from millstream.diagnostics.render import render

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[4] / "docs" / "how-to" / "check-a-script.md"
_SHOWN = re.compile(r"```python\n(?P<script>.*?)```\n\n```text\n(?P<said>.*?)```", re.DOTALL)


def test_the_page_shows_what_is_said_of_its_script(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = PAGE.read_text(encoding="utf-8")
    block = _SHOWN.search(page)
    assert block is not None
    monkeypatch.chdir(tmp_path)
    Path("job.py").write_text(block["script"], encoding="utf-8")

    checked = check_script(spark, Path("job.py"))

    output = render(checked.findings, checked.texts)
    if os.environ.get("UPDATE_SNAPSHOTS") and output != block["said"]:
        PAGE.write_text(page[: block.start("said")] + output + page[block.end("said") :], encoding="utf-8")
        return
    assert output == block["said"]
