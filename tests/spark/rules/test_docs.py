"""Every pipeline that the docs and the examples show holds up before Spark itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from millstream.checking.check import check
from millstream.diagnostics.finding import Severity
from millstream.diagnostics.render import render
from millstream.pipeline.spec_file import load_spec, load_text
from page_blocks import ROOT, blocks, complete

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

EXAMPLES = sorted((ROOT / "examples").glob("*/pipeline.yml"))


@pytest.mark.parametrize(("page", "text"), list(blocks()))
def test_every_yaml_block_checks_with_spark(
    page: Path, text: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "streams" in yaml.safe_load(text):
        pytest.skip("made-up traffic is no pipeline")
    monkeypatch.chdir(tmp_path)
    specs, env = complete(page, text, tmp_path)
    error = []
    for spec in specs:
        make_tables(yaml.safe_load(spec), tmp_path, spark)
        checked = check(load_text("pipeline.yml", spec, tmp_path, env), spark)
        errors = [finding for finding in checked.findings if finding.severity is Severity.ERROR]
        if not errors:
            return
        error.append(render(errors, checked.texts))

    assert error == []


def make_tables(spec: Any, folder: Path, spark: SparkSession) -> None:
    """A table for each source that is one: its columns are read from it."""
    for source in (spec.get("sources") or {}).values():
        table = source.get("delta") if isinstance(source, dict) else None
        path = table.get("path") if isinstance(table, dict) else table
        if path and not (folder / path).exists():
            columns = "CAST(id AS STRING) AS user, CAST(id AS DOUBLE) AS amount, current_timestamp() AS ts"
            spark.range(0).selectExpr(*columns.split(", ")).write.format("delta").save(str(folder / path))


@pytest.mark.parametrize("spec", EXAMPLES, ids=lambda spec: spec.parent.name)
def test_every_example_is_without_findings_under_the_whole_check(
    spec: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(spec.parent)

    checked = check(load_spec(spec, {}), spark)

    assert checked.findings == [], render(checked.findings, checked.texts)
