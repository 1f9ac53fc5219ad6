"""Places on S3 that cannot be written at a start: which of them a run waits for, and which end it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millstream.diagnostics.failure import NotReady, Unreachable
from millstream.frames import bucket_access
from millstream.frames.bucket_access import require_buckets
from millstream.pipeline.spec_file import load_spec
from millstream.spark.cluster.buckets import BucketRefusal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from millstream.pipeline.model import Pipeline

SPEC = """
name: shop
sources:
  orders: {rate: 1}
queries:
  orders:
    to:
      - {delta: {path: "s3a://lake/orders"}, on_error: dead_letter}
      - {parquet: {path: "s3a://files/orders"}}
"""
AWAY, REFUSED = "MS560", "MS567"
SPARK: Any = None


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    (tmp_path / "pipeline.yml").write_text(SPEC)
    pipeline = load_spec(tmp_path / "pipeline.yml", {}).pipeline
    assert pipeline is not None
    return pipeline


def refuse(monkeypatch: pytest.MonkeyPatch, bucket: str, code: str) -> None:
    """Let Spark refuse the places of one bucket."""

    def examine(_: object, places: list[str]) -> Iterator[tuple[str, BucketRefusal]]:
        for place in places:
            if place.startswith(f"s3a://{bucket}/"):
                yield place, BucketRefusal(code, "it cannot be written", "correct it")

    monkeypatch.setattr(bucket_access, "examine_places", examine)


def test_a_bucket_that_is_away_is_waited_for_if_its_batches_can_be_spooled(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, "lake", AWAY)

    require_buckets(SPARK, pipeline, ["orders"])


def test_a_bucket_that_is_away_ends_the_start_if_its_batches_cannot_be_spooled(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, "files", AWAY)

    with pytest.raises(Unreachable) as raised:
        require_buckets(SPARK, pipeline, ["orders"])

    assert raised.value.path == ("queries", "orders", "to", 1, "sink")


def test_a_bucket_that_refuses_the_key_ends_the_start_even_if_its_batches_could_be_spooled(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, "lake", REFUSED)

    with pytest.raises(NotReady) as raised:
        require_buckets(SPARK, pipeline, ["orders"])

    assert raised.value.path == ("queries", "orders", "to", 0, "sink")
