"""How pages become a site: lists, links and the navigation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

import build_site

ROOT = Path(__file__).parents[3]
PAGE = """Text
- first
  continued

  ```sql
  SELECT 1
    AS one
  ```
- second
  - inner
    more

1. one
   two
After
"""


def test_what_belongs_to_an_item_is_indented_by_four_spaces() -> None:
    assert (
        "\n".join(build_site.indent_lists(PAGE.split("\n")))
        == """Text

- first
    continued

    ```sql
    SELECT 1
      AS one
    ```
- second

    - inner
        more

1. one
    two
    After
"""
    )


def test_a_list_in_a_block_of_code_is_left_alone() -> None:
    text = "```yaml\n- a\n  b\n```\n"

    assert "\n".join(build_site.indent_lists(text.split("\n"))) == text


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("[a](../../src/millstream/diagnostics/pages/ms001.md)", "[a](rules/ms001.md)"),
        ("[a](../../examples/starter/#x)", "[a](../../examples/starter/README.md#x)"),
        ("[a](https://example.org/x)", "[a](https://example.org/x)"),
        ("[a](nowhere.md)", "[a](nowhere.md)"),
        ("[a](../../src/millstream)", "a"),
    ],
)
def test_a_link_leads_to_a_page_of_the_site(link: str, target: str) -> None:
    source = ROOT / "docs/reference/rules.md"
    match = build_site.LINK.search(link)
    assert match is not None

    assert build_site.link(match, source, source) == target


def test_the_navigation_has_every_page_once() -> None:
    text = (ROOT / "docs/site.yml").read_text(encoding="utf-8")
    entries = re.findall(r": ((?:docs|examples)/\S*|[A-Z]+\.md)$", text, re.MULTILINE)
    folders = tuple(entry for entry in entries if entry.endswith("/"))
    pages = {str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md")}
    # The page of a folder is the first one inside it.
    listed = {page for page in pages if page.startswith(folders) or page.replace(".md", "/") in folders}

    assert yaml.safe_load(text)
    assert len(entries) == len(set(entries))
    assert sorted(pages - listed - set(entries)) == []
