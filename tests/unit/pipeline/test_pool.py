"""The scheduler's pool of each query."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from millstream.pipeline.export.dump import resolve_spec
from millstream.pipeline.spec_file import load_text

if TYPE_CHECKING:
    from pathlib import Path

SPEC = """name: shop
sources: {ticks: {rate: {}}}
queries:
  alerts: {from: ticks, to: {console: {}}}
  archive: {from: ticks, pool: later, to: {memory: archive}}
"""


def test_a_query_has_the_pool_it_names_or_one_of_its_own(tmp_path: Path) -> None:
    pipeline = load_text("pipeline.yml", SPEC, tmp_path, {}).pipeline
    assert pipeline is not None

    second = load_text("pipeline.yml", yaml.safe_dump(resolve_spec(pipeline)), tmp_path, {}).pipeline

    for item in (pipeline, second):
        assert item is not None
        assert [item.pool("alerts"), item.pool("archive")] == ["alerts", "later"]


def test_a_pool_without_a_name_is_refused(tmp_path: Path) -> None:
    loaded = load_text("pipeline.yml", SPEC.replace("later", '""'), tmp_path, {})

    assert [(finding.code, finding.span.line if finding.span else 0) for finding in loaded.findings] == [
        ("MS003", 5)
    ]
