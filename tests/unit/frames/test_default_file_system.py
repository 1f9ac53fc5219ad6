"""Paths without a scheme, where Hadoop's default file system is not that of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from millstream.diagnostics.failure import NotReady
from millstream.frames import default_file_system
from millstream.frames.default_file_system import require_schemes
from millstream.pipeline.spec_file import load_text

if TYPE_CHECKING:
    from millstream.pipeline.model import Pipeline

SPARK: Any = None
PROJECT = Path("/srv")
REMOTE = {"fs.defaultFS": "hdfs://node:8020/"}


def load(source: str, sink: str, on_malformed: str = "drop") -> Pipeline:
    text = f"""
name: shop
sources:
  orders: {{json: "{source}", schema: {{id: bigint}}, on_malformed: {on_malformed}}}
  idle: {{json: idle, schema: {{id: bigint}}, on_malformed: dead_letter}}
views:
  checked: {{sql: "SELECT * FROM idle", expect: {{known: {{that: id > 0, otherwise: dead_letter}}}}}}
queries:
  orders: {{to: [{{parquet: "{sink}"}}, {{duckdb: {{path: shop.duckdb, table: orders}}}}]}}
  idle: {{from: checked, to: {{parquet: idle-files}}}}
"""
    pipeline = load_text("pipeline.yml", text, PROJECT, {}).pipeline
    assert pipeline is not None
    return pipeline


def set_default(monkeypatch: pytest.MonkeyPatch, settings: dict[str, str]) -> None:
    monkeypatch.setattr(default_file_system.internals, "hadoop_configuration", lambda _: settings)


@pytest.mark.parametrize(
    ("source", "sink", "name", "folder"),
    [
        ("in", "hdfs:///out", "source 'orders' has the path", "/srv/in"),
        ("file:/in", "out", "a sink of query 'orders' has the path", "/srv/out"),
    ],
)
def test_a_path_without_a_scheme_is_refused_with_both_spellings(
    monkeypatch: pytest.MonkeyPatch, source: str, sink: str, name: str, folder: str
) -> None:
    set_default(monkeypatch, REMOTE)

    with pytest.raises(NotReady, match=name) as refused:
        require_schemes(SPARK, load(source, sink), ["orders"])

    assert "for Spark it is on hdfs://node:8020/ (fs.defaultFS)" in refused.value.what
    assert refused.value.fix.startswith(f"write file:{folder} or hdfs://node:8020{folder}, or set")


def test_only_places_that_spark_uses_for_the_queries_need_a_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    set_default(monkeypatch, REMOTE)

    require_schemes(SPARK, load("file:/in", "file:/out"), ["orders"])
    with pytest.raises(NotReady, match="the store of dead letters has the path /srv/"):
        require_schemes(SPARK, load("file:/in", "file:/out", "dead_letter"), ["orders"])


@pytest.mark.parametrize("settings", [{}, {"fs.defaultFS": "file:///"}])
def test_paths_need_no_scheme_if_the_default_is_this_machine(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str]
) -> None:
    set_default(monkeypatch, settings)

    require_schemes(SPARK, load("in", "out"), ["orders", "idle"])
