"""The time that the functions of a project's flows may take."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING
from unittest.mock import MagicMock

import pytest

from millstream.checking.scripts.declarative import flow_graph
from millstream.checking.scripts.declarative.flow_graph import DeclaredFlow, FlowGraph
from millstream.checking.scripts.declarative.project_spec import Project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def graph(tmp_path: Path) -> FlowGraph:
    return FlowGraph(Project(tmp_path, "spark-pipeline.yml", ""), MagicMock())


def declare(name: str, make: Callable[[], object]) -> DeclaredFlow:
    return DeclaredFlow(name, name, make, None)


def test_each_of_two_flows_that_never_end_is_an_error_also_if_one_reads_the_other(
    graph: FlowGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow_graph, "PATIENCE", 0.05)
    bronze = declare("bronze", lambda: threading.Event().wait(100))

    def read_and_wait() -> None:
        graph.make(bronze)
        threading.Event().wait(100)

    gold = declare("gold", read_and_wait)

    graph.make(gold)

    assert [str(flow.error) for flow in (bronze, gold)] == ["its function does not finish"] * 2


def test_the_time_of_a_flow_does_not_include_that_of_the_flows_that_it_reads(
    graph: FlowGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[str] = []

    @contextlib.contextmanager
    def limit(_seconds: float) -> Iterator[None]:
        limits.append("starts")
        yield
        limits.append("ends")

    monkeypatch.setattr(flow_graph, "time_limit", limit)
    bronze = declare("bronze", lambda: limits.append("bronze"))

    def read_twice() -> None:
        graph.make(bronze)
        limits.append("gold")
        graph.make(bronze)

    graph.make(declare("gold", read_twice))

    assert limits == ["starts", "ends", "starts", "bronze", "ends", "starts", "gold", "ends"]
