"""The module `dlt` of Databricks, in terms of Spark's own declarations."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import MagicMock

from pyspark.pipelines.graph_element_registry import graph_element_registration_context

from millstream.checking.scripts.declarative.dlt_module import build_dlt_module
from millstream.checking.scripts.declarative.flow_graph import DatasetKind, FlowGraph
from millstream.checking.scripts.declarative.project_spec import Project

if TYPE_CHECKING:
    from pathlib import Path


def test_a_sink_is_declared(tmp_path: Path) -> None:
    graph = FlowGraph(Project(tmp_path, "spark-pipeline.yml", ""), MagicMock())
    dlt = build_dlt_module(graph)

    with graph_element_registration_context(graph):
        dlt.create_sink(name="topic", format="kafka", options={"topic": "orders"})

    (sink,) = graph.datasets.values()
    assert (sink.kind, sink.format) == (DatasetKind.SINK, "kafka")


def test_tables_and_views_have_their_former_decorators_too(tmp_path: Path) -> None:
    graph = FlowGraph(Project(tmp_path, "spark-pipeline.yml", ""), MagicMock())
    dlt = build_dlt_module(graph)

    with graph_element_registration_context(graph):
        dlt.create_table(comment="as they come")(lambda: None)
        dlt.create_view(lambda: None, name="orders")

    assert [dataset.kind for dataset in graph.datasets.values()] == [
        DatasetKind.TABLE,
        DatasetKind.TEMPORARY_VIEW,
    ]
