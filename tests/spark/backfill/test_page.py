"""The page about backfills: what it shows of a mended view is what the command says, word by word."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from millstream.backfill.execute import backfill as work
from millstream.checking.spark_analysis import analyse_pipeline
from millstream.cli import backfill as command
from spark.backfill.conftest import Shop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from millstream.backfill.options import BackfillOptions
    from millstream.backfill.report import BackfillReport
    from millstream.pipeline.spec_file import LoadedSpec

pytestmark = pytest.mark.usefixtures("small_batches")

PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "backfill.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
(SPEC,) = (text for kind, text in BLOCKS if kind == "yaml")
(ROWS,) = (text for kind, text in BLOCKS if kind == "json")
MISTAKE, MENDED = "amount > 10", "amount >= 10"
# What a terminal shows: a command, and all that it prints until the next.
SHOWN = [
    (shlex.split(line), output)
    for kind, text in BLOCKS
    if kind == "text"
    for line, output in re.findall(r"^\$ millstream backfill (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE)
]


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """The page's rows, read by the stream while the view had its mistake; then the view is mended."""
    monkeypatch.chdir(tmp_path)
    result = Shop(tmp_path, spark)
    for line in ROWS.splitlines():
        result.add_lines(json.loads(line))
    result.spec = SPEC.replace(MENDED, MISTAKE)
    result.stream()
    result.spec = SPEC
    (tmp_path / "pipeline.yml").write_text(SPEC)
    return result


def test_a_mended_view_is_written_down_as_the_page_shows(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def in_this_session(
        loaded: LoadedSpec, queries: Sequence[str], options: BackfillOptions
    ) -> BackfillReport:
        assert loaded.pipeline is not None
        planned = analyse_pipeline(shop.spark, loaded).queries
        names = list(queries or loaded.pipeline.queries)
        return work(shop.spark, loaded.pipeline, planned, names, options, lambda _: None)

    monkeypatch.setattr(command, "_work", in_this_session)
    assert MENDED in SPEC
    assert len(SHOWN) == 4

    for words, output in SHOWN:
        result = CliRunner().invoke(command.command, words, standalone_mode=False)
        assert result.exception is None
        assert result.output == output
