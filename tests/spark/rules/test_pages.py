"""Every page of a code, with the full check: its blocks give what their comments say, and Spark does what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import rule_pages
from millstream.analysis.rule_pages import SparkBehaviour, find_pages, parse_spark_behaviour

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

BLOCKS = [
    pytest.param(block, id=f"{page.stem} block {block.number}")
    for page in find_pages().values()
    for block in rule_pages.read(page)
]
# What Spark is not asked, or is not asked here: nothing connects, and what the rules refuse is not run.
NOT_ASKED = {
    "MS102": "a view that reads what is not there is not given to Spark",
    "MS103": "a statement that may not be a query is not given to Spark, which would run it",
    "MS105": "a view that reads itself is not given to Spark",
    "MS108": "a function of a sink that cannot be found is told before there is anything to start",
    "MS303": "the writer of batches refuses the trigger, before there is a plan",
    "MS501": "the source refuses when it is opened",
    "MS502": "the source refuses when it is opened; a static one is opened by the check",
}


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_gives_what_its_comments_say(
    block: rule_pages.Block, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    checked = rule_pages.judge(block, tmp_path, spark)

    rule_pages.compare(block, checked, planned=True)
    spark_behaviour = parse_spark_behaviour(block.page.read_text(encoding="utf-8"))
    code = block.page.name[:5].upper()
    if block.fails and spark_behaviour is not None and code not in NOT_ASKED:
        verdict = [f"{finding.code} {finding.message}" for finding in checked.verdict]
        assert rule_pages.is_refused(checked) == (spark_behaviour is SparkBehaviour.REFUSES), (
            f"the page says that Spark {spark_behaviour}; its verdict: {verdict}"
        )
