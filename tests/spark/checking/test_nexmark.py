"""The spec of the Nexmark benchmark passes the check: its 23 queries are those that Spark accepts in a stream."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.checking.check import check
from millstream.pipeline.spec_file import load_spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPEC = Path(__file__).parents[3] / "benchmarks" / "nexmark" / "pipeline.yml"


def test_the_23_queries_of_nexmark_pass_the_check(spark: SparkSession, tmp_path: Path) -> None:
    shutil.copy(SPEC, tmp_path)
    (tmp_path / "data" / "side_input").mkdir(parents=True)

    result = check(load_spec(tmp_path / "pipeline.yml", {}), spark)

    assert [query.name for query in result.queries] == [f"q{number}" for number in range(23)]
    assert [(finding.code, finding.message) for finding in result.findings] == []
