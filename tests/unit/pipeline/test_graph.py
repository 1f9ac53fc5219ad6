"""Who reads whom."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from millstream.pipeline.export import graph_export
from millstream.pipeline.graph import PipelineGraph
from millstream.pipeline.spec_file import load_text

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.pipeline.model import Pipeline

SPEC = """
name: shop
sources:
  ticks: {rate: 1}
  orders: {rate: 2}
views:
  last: SELECT * FROM MIDDLE
  middle: SELECT * FROM ticks JOIN orders USING (value)
  hook: {python: "transforms:hook"}
queries:
  orders: {from: last, to: {console: {}}}
  hook: {to: {console: {}}}
"""
HOOK = "def hook(ticks, *, middle):\n    raise SystemExit\n"


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    (tmp_path / "transforms.py").write_text(HOOK)
    result = load_text("pipeline.yml", SPEC, tmp_path, {}).pipeline
    assert result is not None
    return result


def test_a_view_comes_after_what_it_reads(pipeline: Pipeline) -> None:
    order = PipelineGraph.of(pipeline).order

    assert order.index("middle") < order.index("last")


def test_names_are_found_without_regard_to_case(pipeline: Pipeline) -> None:
    assert PipelineGraph.of(pipeline).reads["last"] == ("middle",)


def test_a_python_view_reads_its_parameters_and_is_not_run(pipeline: Pipeline) -> None:
    assert PipelineGraph.of(pipeline).reads["hook"] == ("ticks", "middle")


def test_a_query_called_like_a_source_has_the_sources_of_what_it_writes(pipeline: Pipeline) -> None:
    assert PipelineGraph.of(pipeline).sources_of("orders") == ["ticks", "orders"]


def test_a_callable_reads_its_parameters(pipeline: Pipeline) -> None:
    def fine(ticks: object, unheard: object) -> None: ...

    views = {"fine": pipeline.views["hook"].model_copy(update={"python": fine})}
    graph = PipelineGraph.of(pipeline.model_copy(update={"views": views}))

    assert (graph.reads["fine"], graph.unknown["fine"][0].text) == (("ticks",), "unheard")


def test_views_in_a_circle_are_told_once_and_have_no_order(tmp_path: Path) -> None:
    text = SPEC.replace("FROM ticks JOIN orders USING (value)", "FROM last")
    result = load_text("pipeline.yml", text, tmp_path, {}).pipeline
    assert result is not None

    graph = PipelineGraph.of(result)

    assert (graph.cycles, "last" in graph.order) == ([("last", "middle")], False)


def test_every_edge_of_the_drawing_joins_two_nodes(pipeline: Pipeline) -> None:
    drawn = json.loads(graph_export.graph_as_json(PipelineGraph.of(pipeline)))
    ids = {node["id"] for node in drawn["nodes"]}

    assert {end for edge in drawn["edges"] for end in edge.values()} == ids


def test_mermaid_and_dot_draw_as_many_arrows(pipeline: Pipeline) -> None:
    graph = PipelineGraph.of(pipeline)

    assert graph_export.graph_as_mermaid(graph).count("-->") == graph_export.graph_as_dot(graph).count("->")
