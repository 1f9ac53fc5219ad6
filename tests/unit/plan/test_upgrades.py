"""Checkpoints of earlier versions of Spark and of this project: each gets a verdict, and none a traceback.

`tools/checkpoint_fixtures.py` writes those of Spark, with the PySpark of that version.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from millstream.cli.main import cli

FIXTURES = Path(__file__).parent / "checkpoints"
OF_SPARK = sorted(path for path in FIXTURES.glob("spark-*/*") if path.is_dir())
SPEC = """
name: shop
spark: {spark.sql.shuffle.partitions: "1"}
sources:
  orders:
    json: {path: /data/in, max_files_per_trigger: 1}
    schema: {id: string, k: string, v: bigint, at: timestamp}
    watermark: {event_time: at, delay_threshold: 10 minutes}
    on_malformed: drop
views:
  windows: SELECT window.start AS since, k, sum(v) AS s FROM orders GROUP BY window(at, '10 minutes'), k
queries:
  rows: {from: orders, to: {delta: lake/rows}}
  windows: {output_mode: update, to: {delta: {path: lake/windows, merge_on: [since, k]}}}
"""


def place(folder: Path, checkpoint: Path, query: str) -> None:
    """Give a query of a project the checkpoint."""
    (folder / "pipeline.yml").write_text(SPEC)
    shutil.copytree(checkpoint, folder / ".millstream" / "checkpoints" / query)


def run(folder: Path, *words: str) -> Result:
    result = CliRunner().invoke(cli, [*words, "-f", str(folder)], standalone_mode=False)
    assert result.exception is None
    return result


def test_there_is_a_checkpoint_of_each_kind_of_state_and_version() -> None:
    versions = {path.parent.name for path in OF_SPARK}
    assert "spark-4.2.0" in versions
    for version in versions:
        names = {path.name for path in OF_SPARK if path.parent.name == version}
        assert names == {"pairs", "rocksdb", "rows", "unique", "windows"}, version


@pytest.mark.parametrize("checkpoint", OF_SPARK, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_checkpoint_that_spark_alone_wrote_is_read_and_cannot_be_judged(
    checkpoint: Path, tmp_path: Path
) -> None:
    place(tmp_path, checkpoint, "windows")

    plan = run(tmp_path, "plan", "--fast", "--select", "windows")
    shown = run(tmp_path, "checkpoint", "show", "windows")
    verified = run(tmp_path, "checkpoint", "verify", "windows")

    assert plan.stdout.startswith(
        "windows: cannot tell\n  the checkpoint has no record of the query that wrote it"
    )
    assert "batches: 0 to " in shown.stdout
    assert verified.return_value in (None, 0), verified.stdout


@pytest.mark.parametrize(
    ("query", "verdict"), [("rows", "continues; nothing has changed"), ("windows", "cannot tell")]
)
def test_a_record_without_a_plan_is_judged_by_what_it_has(query: str, verdict: str, tmp_path: Path) -> None:
    """Written by the last commit of this project whose record had no plan: the state of a query is unknown."""
    place(tmp_path, FIXTURES / "record-without-plan" / query, query)

    plan = run(tmp_path, "plan", "--fast", "--select", query)
    shown = run(tmp_path, "checkpoint", "show", query)

    assert plan.stdout.startswith(f"{query}: {verdict}\n"), plan.stdout
    assert "millstream" in shown.stdout
