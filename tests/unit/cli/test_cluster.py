"""The settings with which a command reaches S3: those of the spec, of spark-submit, and ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.cli.project import load_project
from millstream.connectors.api.values import bucket_options
from millstream.connectors.api.values.bucket_options import storage_options
from millstream.spark import internals
from millstream.spec.secrets.redaction import redact_values

if TYPE_CHECKING:
    from pathlib import Path

CLIENT = "spark.hadoop.fs.s3a"
SPEC = f"""
name: shop
spark: {{{CLIENT}.retry.limit: 7}}
sources:
  orders: {{rate: 1}}
queries:
  orders: {{to: {{delta: {{path: "s3a://lake/orders"}}}}}}
"""
SUBMITTED = {
    f"{CLIENT}.retry.limit": "8",
    f"{CLIENT}.attempts.maximum": "9",
    f"{CLIENT}.secret.key": "pq93kfj2lw0a",
    "spark.executor.cores": "2",
}


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_options, "_settings", {})
    monkeypatch.setattr(internals, "is_submitted", lambda: True)
    monkeypatch.setattr(internals, "submitted_conf", lambda: SUBMITTED)


@pytest.mark.usefixtures("submitted")
def test_settings_of_spark_submit_for_s3_precede_ours_and_follow_those_of_the_spec(tmp_path: Path) -> None:
    (tmp_path / "pipeline.yml").write_text(SPEC)

    pipeline = load_project(tmp_path).pipeline

    assert pipeline is not None
    client = {key: value for key, value in pipeline.spark.items() if key.startswith(CLIENT)}
    assert {key.removeprefix(CLIENT): value for key, value in client.items()} == {
        ".input.stream.type": "classic",
        ".attempts.maximum": "9",
        ".retry.limit": 7,
        ".secret.key": "pq93kfj2lw0a",
    }


@pytest.mark.usefixtures("submitted")
def test_a_key_of_spark_submit_opens_tables_without_spark_and_is_redacted(tmp_path: Path) -> None:
    (tmp_path / "pipeline.yml").write_text(SPEC)

    load_project(tmp_path)

    assert storage_options("s3a://lake/orders") == {"AWS_SECRET_ACCESS_KEY": "pq93kfj2lw0a"}
    assert "pq93kfj2lw0a" not in redact_values("the key pq93kfj2lw0a")
