"""Every example in small size on real servers: it runs as its README says, and makes what it is expected to make."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.cli.init import example_names
from trials.stage import Stage, staged
from trials.trial import attempt, declared

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES = example_names()


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("stage")) as made:
        yield made


@pytest.mark.parametrize("name", NAMES)
def test_it_says_what_is_expected_of_it_in_both_sizes(name: str) -> None:
    assert declared(name, "full") is not None
    assert declared(name, "small") is not None


# Each starts Spark, some twice, and runs up to six queries to their end.
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", NAMES)
def test_it_makes_what_is_expected(name: str, stage: Stage, tmp_path: Path) -> None:
    trial = attempt(name, "small", stage, tmp_path / name)

    assert trial.wrong == []
    assert trial.first is not None
