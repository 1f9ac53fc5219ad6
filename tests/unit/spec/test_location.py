"""Paths and URIs in a spec."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.pipeline.spec_file import LoadedSpec, load_text

PROJECT = Path("/srv/shop")


def load(checkpoints: str) -> LoadedSpec:
    text = f"""
name: shop
defaults: {{checkpoints: "{checkpoints}"}}
sources:
  orders: {{json: input, schema: {{id: bigint}}, on_malformed: dead_letter}}
queries:
  copy: {{from: orders, to: {{parquet: copy}}}}
"""
    return load_text("pipeline.yml", text, PROJECT, {})


@pytest.mark.parametrize(
    ("written", "folder"),
    [
        ("file:/mnt/ck", "/mnt/ck"),
        ("file:///mnt/ck/", "/mnt/ck"),
        ("/mnt/ck/", "/mnt/ck"),
        ("ck", "/srv/shop/ck"),
        ("./hdfs:/ck", "/srv/shop/hdfs:/ck"),
        ("hdfs://node/ck", "hdfs://node/ck"),
    ],
)
def test_each_spelling_of_the_folder_of_checkpoints_names_that_folder(written: str, folder: str) -> None:
    pipeline = load(written).pipeline

    assert pipeline is not None
    assert str(pipeline.checkpoint_folder("copy")) == f"{folder}/copy"
    assert pipeline.letters.path == f"{folder}/_dead_letters"  # type: ignore[attr-defined]


@pytest.mark.parametrize("written", ["hdfs:/ck", "s3a:/bucket/ck", "viewfs:/ck"])
def test_a_uri_with_one_slash_is_not_taken_for_a_local_folder(written: str) -> None:
    scheme, _, rest = written.partition(":/")

    (finding,) = load(written).findings

    assert finding.code == "MS003"
    assert f"write {scheme}://HOST/{rest}, or ./{written} for a folder" in finding.message


def test_a_home_that_does_not_exist_is_a_finding() -> None:
    (finding,) = load("~nobody-of-that-name/ck").findings

    assert finding.code == "MS003"
    assert "user 'nobody-of-that-name' has no home directory" in finding.message
