"""Every example in small size on real servers: it runs as its README says, and makes what it is expected to make."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.cli.init import example_names
from millstream.pipeline.spec_file import load_spec
from trials.stage import Stage, staged
from trials.trial import attempt, declared

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

NAMES = example_names()
EXAMPLES = Path(__file__).parents[2] / "examples"


# Kinds that tests/conformance and tests/acceptance, which runs the e-commerce example, play on servers anyway. What
# reads a socket is run at no size; tests/spark/connectors reads one. tests/recovery runs a query to the console.
ELSEWHERE = {
    "console", "csv", "delta", "json", "kafka", "memory", "parquet", "postgres", "rate", "socket", "table", "text",
}  # fmt: skip


def parts(name: str) -> set[Hashable]:
    """What an example has that is played nowhere else: rarer sources and sinks, and what it does beside running."""
    pipeline = load_spec(EXAMPLES / name / "pipeline.yml", {}).pipeline
    small = declared(name, "small")
    assert pipeline is not None
    assert small is not None
    sinks = {entry.sink.kind for query in pipeline.queries.values() for entry in query.to}
    sources = {source.source.kind for source in pipeline.sources.values()}
    steps = {step for step in ("beside", "traffic") if getattr(small, step)}
    return {
        *(("to", kind) for kind in sinks - ELSEWHERE),
        *(("from", kind) for kind in sources - ELSEWHERE),
        *steps,
    }


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("stage")) as result:
        yield result


@pytest.mark.parametrize("name", NAMES)
def test_it_says_what_is_expected_of_it_in_both_sizes(name: str) -> None:
    assert declared(name, "full") is not None
    assert declared(name, "small") is not None


# Each starts Spark, some twice, and runs up to six queries to their end.
@pytest.mark.timeout(600)
@pytest.mark.sweep(by=parts)
@pytest.mark.parametrize("name", NAMES)
def test_it_makes_what_is_expected(name: str, stage: Stage, tmp_path: Path) -> None:
    trial = attempt(name, "small", stage, tmp_path / name)

    assert trial.wrong == []
    assert trial.first is not None
