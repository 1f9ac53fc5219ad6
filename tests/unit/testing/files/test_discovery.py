"""Which files are tests, and which tests are meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.diagnostics.failure import InvalidInput
from millstream.testing.files.discovery import find_test_files, is_test_file, select_cases
from millstream.testing.files.loader import load

TEST = """\
pipeline: {name: a, sources: {ticks: {rate: {}}}, queries: {ticks: {to: {console: {}}}}}
tests:
  a late Row is dropped: {steps: [restart]}
  another: {steps: [restart]}
"""


def write_file(file: Path, text: str = TEST) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_file(tmp_path / "pipeline.yml", "name: a\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_tests_of_the_project_are_meant_wherever_in_it_one_stands(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_file(project / "tests" / "b.yml")
    write_file(project / "tests" / "deep" / "a.yaml")
    (project / "views").mkdir()
    monkeypatch.chdir(project / "views")

    assert [str(file) for file in find_test_files([])] == ["../tests/b.yml", "../tests/deep/a.yaml"]


def test_a_folder_stands_for_the_tests_below_it(project: Path) -> None:
    write_file(project / "shop" / "tests" / "a.yml")
    write_file(project / "shop" / "pipeline.yml")

    assert (
        find_test_files([Path("shop")]) == find_test_files([Path("shop/tests")]) == [Path("shop/tests/a.yml")]
    )


def test_a_file_that_is_named_is_one_whatever_it_holds(project: Path) -> None:
    write_file(project / "odd.yml", "tsets: {}")

    assert find_test_files([Path("odd.yml")]) == [Path("odd.yml")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tests/data.yml", "rows: []\n"),
        ("tests/other.yml", "version: 2\ntests:\n  - unique\n"),
        ("models/schema.yml", TEST),
        ("tests/a.txt", TEST),
        ("tests/nested.yml", "jobs:\n  tests:\n    steps: []\n"),
    ],
)
def test_what_is_no_test_file_is_none(name: str, text: str, project: Path) -> None:
    assert not is_test_file(write_file(project / name, text))


def test_a_byte_order_mark_before_the_first_key_changes_nothing(project: Path) -> None:
    first, rest = TEST.splitlines(keepends=True)[0], "".join(TEST.splitlines(keepends=True)[1:])

    assert is_test_file(write_file(project / "tests" / "a.yml", f"\ufeff{rest}{first}"))


@pytest.mark.parametrize("path", ["gone", "."])
def test_nothing_to_play_is_said(path: str, project: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no"):
        find_test_files([project / path])


def test_words_choose_tests_by_file_and_name(project: Path) -> None:
    cases = load(write_file(project / "tests" / "shop.yml"), lambda _: {}).cases

    assert [case.name for case in select_cases(cases, "late row")] == ["a late Row is dropped"]
    assert [case.name for case in select_cases(cases, "another SHOP")] == ["another"]
    assert select_cases(cases, "late another") == []
    assert len(select_cases(cases, None)) == 2
