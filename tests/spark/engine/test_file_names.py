"""Names of files that Spark cannot read: what a run says, and what helps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spark.conftest import Project

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("interpreted")


def test_a_file_with_a_colon_in_its_name_is_named_and_read_once_it_is_renamed(
    spark: SparkSession, tmp_path: Path
) -> None:
    project = Project(tmp_path, spark)
    project.add_lines({"id": "a", "amount": 1, "at": "2026-01-01T12:01:00Z"})
    project.add_lines({"id": "b", "amount": 1, "at": "2026-01-01T12:02:00Z"})
    file = tmp_path / "in" / "orders of 12:02:00.json"
    (tmp_path / "in" / "002.json").rename(file)
    pipeline = project.pipeline(
        queries={"copy": {"from": "orders", "to": [{"delta": str(tmp_path / "table")}]}}
    )

    assert not project.run(pipeline)

    (failed,) = project.list_events("query_failed")
    assert "because the file's name contains a colon" in failed.data["reason"]
    assert "12:02:00.json" in failed.data["reason"]
    assert failed.data["fix"].startswith("rename the file")
    file.rename(file.with_name("orders of 12-02.json"))
    assert project.run(pipeline)
    assert [row[0] for row in project.rows("table")] == ["a", "b"]
