"""What a pipeline needs of the executors of a cluster."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from millstream.diagnostics.failure import NotReady
from millstream.frames import executor_requirements
from millstream.pipeline.spec_file import load_text
from millstream.spark.cluster.executors import Lack

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from millstream.pipeline.model import Pipeline

    Calls = list[tuple[Sequence[str], Sequence[Path]]]

SPEC = """
name: shop
defaults: {checkpoints: state}
sources:
  orders:
    kafka: {bootstrap_servers: "h:1", subscribe: orders}
    schema: {id: bigint, user: string}
views:
  priced: {python: "transforms:priced"}
queries:
  orders:
    to: [{postgres: {table: t, url: "postgresql://h/d"}}, {delta: "s3a://bucket/orders"}]
  priced:
    to: {parquet: lake/priced}
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    (tmp_path / "transforms.py").write_text("def priced(orders):\n    return orders\n")
    loaded = load_text("pipeline.yml", SPEC, tmp_path, {})
    assert loaded.pipeline is not None, loaded.findings
    return loaded.pipeline


def session(master: str) -> Any:
    return SimpleNamespace(sparkContext=SimpleNamespace(master=master))


@pytest.fixture
def examined(monkeypatch: pytest.MonkeyPatch) -> Calls:
    calls: Calls = []

    def examine(_: object, packages: Sequence[str], folders: Sequence[Path]) -> list[Lack]:
        calls.append((packages, folders))
        return [Lack("the executor on w has no disk", "buy one"), Lack("nor a name", "give it one")]

    monkeypatch.setattr(executor_requirements, "examine_executors", examine)
    return calls


def test_folders_are_those_that_tasks_write_on_this_machines_file_system(
    pipeline: Pipeline, examined: Calls, tmp_path: Path
) -> None:
    executor_requirements.find_lacks(session("spark://h:7077"), pipeline, ["orders", "priced"])

    state, lake = tmp_path / "state", tmp_path / "lake"
    assert examined[0][1] == [lake / "priced", state / "_dead_letters", state / "orders", state / "priced"]


@pytest.mark.parametrize(
    ("query", "packages"),
    [("orders", ["pgpq", "psycopg", "pyarrow", "pydantic"]), ("priced", ["pandas", "pyarrow"])],
)
def test_packages_are_those_of_the_querys_own_views_and_sinks(
    pipeline: Pipeline, examined: Calls, query: str, packages: list[str]
) -> None:
    executor_requirements.find_lacks(session("spark://h:7077"), pipeline, [query])

    assert examined[0][0] == packages


def test_all_that_is_missing_is_one_error(pipeline: Pipeline, examined: Calls) -> None:
    with pytest.raises(NotReady, match="the executor on w has no disk; nor a name"):
        executor_requirements.require_executors(session("spark://h:7077"), pipeline, ["orders"])

    assert examined


def test_a_run_starts_although_the_clock_of_an_executor_is_wrong(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    lack = Lack("the clock of the executor on w is at least 20 s behind", "set it", is_fatal=False)
    monkeypatch.setattr(executor_requirements, "examine_executors", lambda *_: [lack])

    executor_requirements.require_executors(session("spark://h:7077"), pipeline, ["orders"])

    assert executor_requirements.find_lacks(session("spark://h:7077"), pipeline, ["orders"]) == [lack]


def test_nothing_is_asked_of_a_local_session(pipeline: Pipeline, examined: Calls) -> None:
    executor_requirements.require_executors(session("local[4]"), pipeline, ["orders"])

    assert examined == []
