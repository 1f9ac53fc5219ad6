"""Spark's checkpoint folder, read without Spark. The files below are as Spark 4.2 writes them."""

import json
from pathlib import Path

import pytest

from millstream.checkpoint.folder import Checkpoint
from millstream.diagnostics.failure import CheckpointError

OFFSETS = """v1
{"batchWatermarkMs":1767268500000,"batchTimestampMs":1767268800123,"conf":{"spark.sql.shuffle.partitions":"2"}}
{"clicks":{"0":120,"1":98}}
-"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkpoint with batches 0 to 2 planned and 0 to 1 committed."""
    (tmp_path / "metadata").write_text('{"id":"6a2b1c3d-0000-4000-8000-000000000001"}')
    for log, last in (("offsets", 2), ("commits", 1)):
        (tmp_path / log).mkdir()
        for number in range(last + 1):
            (tmp_path / log / str(number)).write_text(OFFSETS)
            (tmp_path / log / f".{number}.crc").write_bytes(b"crc\0")
    return tmp_path


def test_the_batch_in_progress_is_planned_and_not_committed(folder: Path) -> None:
    checkpoint = Checkpoint(folder)

    assert (checkpoint.planned(), checkpoint.committed()) == (2, 1)


def test_batches_are_ordered_as_numbers(folder: Path) -> None:
    for number in (9, 10):
        (folder / "offsets" / str(number)).write_text(OFFSETS)

    assert Checkpoint(folder).planned() == 10


def test_an_offset_file_gives_watermark_settings_and_a_place_a_source(folder: Path) -> None:
    offsets = Checkpoint(folder).offsets(2)

    assert offsets is not None
    assert offsets.watermark == 1767268500000
    assert offsets.conf == {"spark.sql.shuffle.partitions": "2"}
    assert offsets.sources == ('{"clicks":{"0":120,"1":98}}', None)


def test_named_offsets_of_version_two_lose_their_names(folder: Path) -> None:
    (folder / "offsets" / "3").write_text('v2\n{"sourceMetadataInfo":{}}\nclicks:{"clicks":{"0":7}}')

    offsets = Checkpoint(folder).offsets(3)

    assert offsets is not None
    assert offsets.sources == ('{"clicks":{"0":7}}',)


def test_offsets_of_continuous_processing_say_nothing_but_places(folder: Path) -> None:
    (folder / "offsets" / "3").write_text('v1\n\n{"clicks":{"0":7}}')

    offsets = Checkpoint(folder).offsets(3)

    assert offsets is not None
    assert (offsets.sources, offsets.watermark, offsets.conf) == (('{"clicks":{"0":7}}',), 0, {})


@pytest.mark.parametrize("torn", ["", "v1", "v1\n\n", "v9\n{}\n-", 'v1\n{"batchWaterm'])
def test_a_torn_offset_file_is_named_and_not_guessed(folder: Path, torn: str) -> None:
    (folder / "offsets" / "2").write_text(torn)

    with pytest.raises(CheckpointError, match="offsets/2"):
        Checkpoint(folder).offsets(2)


def test_the_first_offsets_of_kafka_stand_behind_a_zero_byte(folder: Path) -> None:
    (folder / "sources" / "0").mkdir(parents=True)
    (folder / "sources" / "0" / "0").write_bytes(b'\0v1\n{"clicks":{"0":5}}')

    assert Checkpoint(folder).first(0) == '{"clicks":{"0":5}}'


def test_a_fresh_checkpoint_gets_an_id_that_stays(tmp_path: Path) -> None:
    result = Checkpoint(tmp_path / "fresh").ensure_id()

    assert Checkpoint(tmp_path / "fresh").query_id() == result
    assert Checkpoint(tmp_path / "fresh").ensure_id() == result


def test_batches_without_an_id_belong_to_nobody(folder: Path) -> None:
    (folder / "metadata").unlink()

    with pytest.raises(CheckpointError, match="which query"):
        Checkpoint(folder).ensure_id()


def test_a_torn_id_is_named(folder: Path) -> None:
    (folder / "metadata").write_text('{"id":')

    with pytest.raises(CheckpointError, match="metadata"):
        Checkpoint(folder).query_id()


def test_the_id_is_written_as_spark_reads_it(tmp_path: Path) -> None:
    result = Checkpoint(tmp_path).ensure_id()

    assert json.loads((tmp_path / "metadata").read_text()) == {"id": result}
