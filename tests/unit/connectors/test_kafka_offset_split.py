"""A range of offsets or files is halved until one record or file is left."""

from __future__ import annotations

from millstream.connectors import registry
from millstream.connectors.api.values.offsets import OffsetRange

KAFKA = registry.sources()["kafka"].model_validate({"bootstrap_servers": "b:9092", "subscribe": "t"})
FILES = registry.sources()["parquet"].model_validate({"path": "in"})


def leaves(source: object, offsets: OffsetRange) -> list[str]:
    """What is left when nothing can be halved any more."""
    halves = source.halves(offsets)  # type: ignore[attr-defined]
    if halves is None:
        return source.describe_offsets(offsets)  # type: ignore[attr-defined, no-any-return]
    return [leaf for half in halves for leaf in leaves(source, half)]


def test_every_offset_of_every_partition_is_a_part_of_its_own() -> None:
    offsets = OffsetRange('{"t":{"0":3,"1":7,"2":5}}', '{"t":{"0":6,"1":7,"2":7}}')

    assert leaves(KAFKA, offsets) == [
        *(f"partition 0 of topic 't', offset {offset}" for offset in (3, 4, 5)),
        *(f"partition 2 of topic 't', offset {offset}" for offset in (5, 6)),
    ]


def test_a_partition_read_from_its_oldest_record_is_halved_from_0_on() -> None:
    first, second = KAFKA.halves(OffsetRange(None, '{"t":{"0":10}}')) or ()

    assert KAFKA.describe_offsets(first) == ["partition 0 of topic 't', offsets from its oldest to 4"]
    assert KAFKA.describe_offsets(second) == ["partition 0 of topic 't', offsets 5 to 9"]


def test_files_are_halved_down_to_one() -> None:
    assert leaves(FILES, OffsetRange(None, "{}", ("a", "b", "c"))) == ["file a", "file b", "file c"]
