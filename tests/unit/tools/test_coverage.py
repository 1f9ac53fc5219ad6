"""The page of the engine's parts names nothing that does not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from generators.coverage import NotThere, coverage_page

if TYPE_CHECKING:
    from pathlib import Path

GOOD = {
    "example": "{shop: 'rate: 5'}",
    "test": "tests/test_rate.py::test_it_runs",
    "page": "docs/rate.md#how-fast",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with one example, two tests and one page."""
    for folder in ("docs/reference", "examples/shop", "tests"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "examples/shop/pipeline.yml").write_text("name: shop\nrate: 5\n")
    (tmp_path / "tests/test_rate.py").write_text("def test_it_runs() -> None: ...\n")
    (tmp_path / "tests/cases.yml").write_text("tests:\n  a row comes: {}\n")
    (tmp_path / "docs/rate.md").write_text("# The rate\n\n## How fast?\n")
    return tmp_path


def page(root: Path, **more: str) -> str:
    output = "".join(f"      {key}: {value}\n" for key, value in (GOOD | more).items() if value)
    text = f"parts:\n  Sources:\n    rate:\n{output}"
    (root / "docs/reference/coverage.yml").write_text(text)
    return coverage_page(root)


def test_a_part_is_a_line_with_its_example_test_and_page(root: Path) -> None:
    assert page(root).splitlines()[-1] == (
        "| rate | [shop](../../examples/shop/README.md) | [it runs](../../tests/test_rate.py) "
        "| [The rate](../../docs/rate.md#how-fast) |"
    )


def test_a_case_of_a_test_file_is_a_test(root: Path) -> None:
    assert "[a row comes](../../tests/cases.yml)" in page(root, test='"tests/cases.yml::a row comes"')


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"example": "{stall: rate}"}, "rate: there is no example 'stall'"),
        ({"example": "{shop: 'rate: 6'}"}, "rate: the example 'shop' has no 'rate: 6' that shows it"),
        ({"example": "shop"}, "rate: the example 'shop' has no '' that shows it"),
        ({"example": ""}, "rate: no example is named"),
        (
            {"test": "tests/test_rate.py::test_it_walks"},
            "rate: there is no test tests/test_rate.py::test_it_walks",
        ),
        ({"test": "tests/test_gone.py::test_it_runs"}, "rate: there is no test tests/test_gone.py"),
        ({"test": ""}, "rate: no test is named"),
        ({"page": "docs/gone.md"}, "rate: there is no page docs/gone.md"),
        ({"page": "docs/rate.md#how-slow"}, "rate: docs/rate.md has no heading #how-slow"),
        ({"page": ""}, "rate: no page is named"),
        ({"pages": "docs/rate.md"}, "rate: there is no key pages"),
    ],
)
def test_what_does_not_exist_ends_the_generator(root: Path, more: dict[str, str], says: str) -> None:
    with pytest.raises(NotThere, match=says):
        page(root, **more)


def test_a_part_that_no_example_shows_says_so(root: Path) -> None:
    assert "| rate | - |" in page(root, example="none")
