"""Places of a spec on S3: what is written, and when Spark needs the client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.pipeline.buckets import find_checkpoints, find_written_places, uses_s3
from millstream.pipeline.spec_file import load_spec

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.pipeline.model import Pipeline

SPEC = """
name: lake
{more}
sources:
  orders:
    json: {{path: input}}
    schema: {{id: bigint}}
    on_malformed: dead_letter
queries:
  orders:
    to: [{{parquet: {{path: lake/files}}}}, {{delta: {{path: "{table}"}}}}]
"""


def load(folder: Path, table: str, more: str = "") -> Pipeline:
    file = folder / "pipeline.yml"
    file.write_text(SPEC.format(table=table, more=more), encoding="utf-8")
    pipeline = load_spec(file, {}, ()).pipeline
    assert pipeline is not None
    return pipeline


def test_tables_and_dead_letters_on_s3_are_written_and_local_files_are_not(tmp_path: Path) -> None:
    pipeline = load(tmp_path, "s3a://lake/table", "dead_letters: s3a://letters/all")

    assert uses_s3(pipeline)
    assert list(find_written_places(pipeline, ["orders"])) == [
        (("queries", "orders", "to", 1, "sink"), "s3a://lake/table"),
        (("dead_letters",), "s3a://letters/all"),
    ]


def test_a_setting_of_the_client_alone_means_that_s3_is_used(tmp_path: Path) -> None:
    assert uses_s3(
        load(tmp_path, "lake/table", "spark: {spark.hadoop.fs.s3a.endpoint: http://127.0.0.1:9000}")
    )
    assert not uses_s3(load(tmp_path, "lake/table"))


def test_checkpoints_on_s3_are_places_that_a_run_writes(tmp_path: Path) -> None:
    pipeline = load(tmp_path, "lake/table", "defaults: {checkpoints: s3a://lake/checkpoints}")

    assert uses_s3(pipeline)
    assert (("defaults", "checkpoints"), "s3a://lake/checkpoints/orders") in list(
        find_written_places(pipeline, ["orders"])
    )
    assert list(find_checkpoints(load(tmp_path, "s3a://lake/table"), ["orders"])) == []
