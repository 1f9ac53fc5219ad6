"""What a part of a sweep holds."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import pytest

import sweep

KINDS, MODES = "abcde", ("append", "update", "complete")
ALL = list(itertools.product(KINDS, MODES))
TESTS = """
import pytest

@pytest.mark.sweep("kind", "mode")
@pytest.mark.parametrize("kind", "abcde")
@pytest.mark.parametrize("mode", ["append", "update"])
def test_swept(kind, mode): pass

@pytest.mark.sweep("kind", cost=lambda number: number)
@pytest.mark.parametrize(("kind", "number"), [("a", 2), ("a", 1)])
def test_dear(kind, number): pass

@pytest.mark.parametrize("way", [1, pytest.param(2, marks=pytest.mark.whole)])
def test_plain(way): pass
"""


def test_each_feature_occurs_and_few_cases_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "WHOLE", False)

    part = sweep.covering(ALL, lambda case: case, "test_a")

    assert {item for case in part for item in case} == {*KINDS, *MODES}
    assert len(part) == len(KINDS)
    assert part == [case for case in ALL if case in part]


def test_of_cases_with_the_same_features_the_cheaper_ones_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "WHOLE", False)
    dear = [("a", "b", 9.0), ("a", "b", 1.0), ("a", "c", 2.0), ("c", "b", 5.0)]

    part = sweep.covering(dear, lambda case: case[:2], "test_a", lambda case: case[2])

    assert part == [("a", "b", 1.0), ("a", "c", 2.0)]


def test_tests_over_the_same_matrix_meet_in_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "WHOLE", False)

    parts = [sweep.covering(ALL, lambda case: case, f"test_{number}") for number in range(50)]

    assert {case for part in parts for case in part} == set(ALL)
    assert parts[0] == sweep.covering(ALL, lambda case: case, "test_0")


def test_a_whole_sweep_has_every_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "WHOLE", True)

    assert sweep.covering(ALL, lambda case: case, "test_a") == ALL


@pytest.mark.parametrize(
    ("setting", "named", "counts"),
    [
        ("part", "", "7/14 tests collected (7 deselected)"),
        ("all", "", "14 tests collected"),
        ("part", "::test_swept[append-a]", "1 test collected"),
        ("part", "", "test_dear[a-1]"),
    ],
)
def test_what_is_left_out_is_counted(tmp_path: Path, setting: str, named: str, counts: str) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    out = ("cacheprovider", "hypothesispytest", "inline_snapshot", "xdist", "timeout", "millstream")
    words = [word for name in out for word in ("-p", f"no:{name}")]

    result = subprocess.run(
        [sys.executable, "-m", "pytest", "--co", "-q", "-p", "sweep", *words, f"test_it.py{named}"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(sweep.__file__).parent), "MILLSTREAM_SWEEP": setting},
        capture_output=True,
        text=True,
        check=False,
    )

    assert counts in result.stdout, result.stdout + result.stderr
