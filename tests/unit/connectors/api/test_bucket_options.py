"""Settings of Hadoop's client of S3 as options of delta-rs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.connectors.api.values.bucket_options import set_bucket_settings, storage_options

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    set_bucket_settings(
        {
            "spark.hadoop.fs.s3a.access.key": "OF-ALL",
            "spark.hadoop.fs.s3a.bucket.lake.access.key": "OF-LAKE",
            "spark.hadoop.fs.s3a.bucket.lake.endpoint": "http://127.0.0.1:9000",
            "spark.sql.shuffle.partitions": 2,
        }
    )
    yield
    set_bucket_settings({})


def test_the_settings_of_a_bucket_precede_those_of_all() -> None:
    assert storage_options("s3a://lake/letters") == {
        "AWS_ACCESS_KEY_ID": "OF-LAKE",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9000",
        "AWS_ALLOW_HTTP": "true",
    }
    assert storage_options("s3a://other/letters") == {"AWS_ACCESS_KEY_ID": "OF-ALL"}


def test_a_place_elsewhere_has_no_options() -> None:
    assert storage_options("/lake/letters") is None
    assert storage_options("hdfs://name:8020/letters") is None
