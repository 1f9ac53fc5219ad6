"""What made a checkpoint, kept beside it."""

from dataclasses import replace
from pathlib import Path

import pytest

from millstream.checkpoint import metadata
from millstream.checkpoint.metadata import QueryMetadata, RecordedOperator
from millstream.diagnostics.failure import CheckpointError

RECORD = QueryMetadata(
    query="funnel",
    query_id="6a2b1c3d",
    operators=(
        RecordedOperator(
            "Aggregate", "Aggregate [k], [k, sum(v) AS s]", "Aggregate [none], [none, sum(none)]"
        ),
    ),
    sources=({"name": "clicks", "kind": "kafka", "topic.clicks": "bVTa8"},),
    sinks=({"key": "6a2b1c3d/delta:lake/funnel", "kind": "delta"},),
    output_mode="update",
    pinned={"spark.sql.shuffle.partitions": "2"},
    unpinned={"spark.sql.session.timeZone": "UTC"},
    versions={"spark": "4.2.0"},
    code={"pipeline.yml": "ab12"},
)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    metadata.write(tmp_path, RECORD)

    assert metadata.read(tmp_path) == RECORD


def test_a_changed_record_keeps_the_one_before(tmp_path: Path) -> None:
    metadata.write(tmp_path, RECORD)
    metadata.write(tmp_path, replace(RECORD, output_mode="complete"))
    metadata.write(tmp_path, replace(RECORD, output_mode="complete"))

    before = QueryMetadata.from_json((tmp_path / "_millstream" / "record-1.json").read_text())
    assert before == RECORD
    assert not (tmp_path / "_millstream" / "record-2.json").exists()


def test_another_function_of_the_same_type_has_another_fingerprint() -> None:
    (before,) = RECORD.operators
    after = replace(before, text=before.text.replace("sum", "max"))

    assert before.fingerprint != after.fingerprint


def test_a_checkpoint_of_plain_spark_has_no_record(tmp_path: Path) -> None:
    assert metadata.read(tmp_path) is None


def test_a_torn_record_is_named(tmp_path: Path) -> None:
    metadata.write(tmp_path, RECORD)
    (tmp_path / "_millstream" / "record.json").write_text('{"query":')

    with pytest.raises(CheckpointError, match=r"record\.json"):
        metadata.read(tmp_path)


def test_a_record_with_a_start_is_not_written_again_for_another_start_but_for_another_content(
    tmp_path: Path,
) -> None:
    started = replace(RECORD, started_after=4)
    metadata.write(tmp_path, started)

    metadata.write(tmp_path, replace(started, started_after=7))
    assert metadata.read(tmp_path) == started

    metadata.write(tmp_path, replace(started, output_mode="complete"))
    assert metadata.read(tmp_path) == replace(started, output_mode="complete")


def test_batches_after_a_rewind_are_those_of_the_record_that_wrote_them(tmp_path: Path) -> None:
    first = replace(RECORD, started_after=-1)
    second = replace(RECORD, output_mode="complete", started_after=10)
    metadata.write(tmp_path, first)
    metadata.write(tmp_path, second)

    # The checkpoint was rewound to batch 5.
    metadata.write(tmp_path, replace(second, started_after=5))

    assert metadata.read_last_committed(tmp_path, 5) == first
    assert metadata.read_last_committed(tmp_path, 6) == replace(second, started_after=5)
    assert not (tmp_path / "_millstream" / "record-2.json").exists()
