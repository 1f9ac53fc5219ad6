"""A code always means the same, and has a page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from millstream.diagnostics.spec_codes import CODES

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def rule_pages(root: Path) -> dict[str, str]:
    """The text of each rule's page, by its module's name."""
    folder = root / "src/millstream/analysis/rules"
    return {page.stem: page.read_text(encoding="utf-8") for page in sorted(folder.glob("ms*.md"))}


@pytest.fixture
def rule_modules(root: Path) -> list[str]:
    return sorted(file.stem for file in (root / "src/millstream/analysis/rules").glob("ms*.py"))


def test_codes_are_ms_and_three_digits() -> None:
    assert [code for code in CODES if not re.fullmatch(r"MS\d{3}", code)] == []


def test_no_two_codes_share_a_name(rule_modules: list[str]) -> None:
    names = [name for name, _ in CODES.values()]
    names += [name[6:].replace("_", "-") for name in rule_modules]

    assert sorted(names) == sorted(set(names))


def test_no_rule_takes_a_code_of_the_catalogue_or_of_another_rule(rule_modules: list[str]) -> None:
    codes = [*CODES, *(module[:5].upper() for module in rule_modules)]

    assert sorted(codes) == sorted(set(codes))


def test_every_rule_has_a_page_and_every_page_a_rule(
    rule_modules: list[str], rule_pages: dict[str, str]
) -> None:
    assert rule_modules == sorted(rule_pages)


def test_the_reference_lists_every_code(root: Path, rule_modules: list[str]) -> None:
    listed = (root / "docs/reference/rules.md").read_text(encoding="utf-8")

    assert [
        code for code in [*CODES, *(name[:5].upper() for name in rule_modules)] if f"| {code} |" not in listed
    ] == []


def test_every_code_that_the_source_gives_is_known(root: Path, rule_modules: list[str]) -> None:
    known = {*CODES, *(name[:5].upper() for name in rule_modules)}
    sources = [file.read_text(encoding="utf-8") for file in (root / "src/millstream").rglob("*.py")]
    known |= {code for text in sources for code in re.findall(r'Code\(\s*"(MS\d{3})"', text)}
    codes = {code for text in sources for code in re.findall(r"[\"'](MS\d{3})[\"']", text)}

    assert sorted(codes - known) == []
