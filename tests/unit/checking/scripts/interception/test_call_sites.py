"""Calls that are located in the text of a script while the script runs."""

from __future__ import annotations

import gc
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from millstream.checking.scripts.interception.call_sites import list_library_folders, parse_python

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TEXT = "\n".join(f"def f{i}(a):\n    return [[a, [a, {{1: (a, b)}}]], a.b.c(a)]" for i in range(100))


@pytest.fixture
def other_threads_run_during_a_collection() -> Iterator[None]:
    """Collect garbage often, and let another thread run each time."""

    def run_another_thread(_phase: str, _info: dict[str, int]) -> None:
        os.sched_yield()

    thresholds = gc.get_threshold()
    gc.set_threshold(20)
    gc.callbacks.append(run_another_thread)
    yield
    gc.callbacks.remove(run_another_thread)
    gc.set_threshold(*thresholds)


@pytest.mark.usefixtures("other_threads_run_during_a_collection")
def test_several_threads_read_a_script_at_once() -> None:
    with ThreadPoolExecutor(4) as pool:
        trees = list(pool.map(parse_python, [TEXT] * 20))

    assert {len(tree.body) for tree in trees} == {100}


@pytest.mark.parametrize(
    ("folder", "is_library"),
    [
        (".local/lib/python3.11/site-packages", True),
        ("usr/lib/python3/dist-packages", True),
        ("jobs/src", False),
    ],
)
def test_packages_of_a_user_and_of_debian_are_not_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, is_library: bool
) -> None:
    monkeypatch.syspath_prepend(tmp_path / folder)

    assert (f"{(tmp_path / folder).resolve()}/" in list_library_folders()) is is_library
