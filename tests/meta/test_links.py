"""No page points at nothing."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^(```+|~~~+).*?^\1", re.MULTILINE | re.DOTALL)

# A test that a page names as its evidence.
TEST = re.compile(r"`((?:tests|src)/[\w/]+\.(?:py|md))(?:::(\w+))?`")


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page's headings, made as GitHub makes them."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    heads = re.findall(r"^#+ +(.+?)\s*$", text, re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", head).lower()) for head in heads]
    return frozenset(head.replace(" ", "-") for head in plain)


def test_every_link_leads_to_a_file_and_heading_that_exist(root: Path, prose: list[Path]) -> None:
    broken = []
    for page in prose:
        # Prose of a connector is shown on its reference page, which is checked.
        if page.name in ("source.md", "sink.md"):
            continue
        text = FENCED.sub("", page.read_text(encoding="utf-8"))
        for link in (item or other for item, other in LINK.findall(text)):
            if link.startswith(("https:", "http:", "mailto:")):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
                broken.append(f"{page.relative_to(root)}: {link}")

    assert broken == []


def test_every_page_of_docs_can_be_reached_from_its_front_page(root: Path) -> None:
    front = root / "docs/README.md"
    reached, waiting = {front}, [front]
    while waiting:
        page = waiting.pop()
        text = FENCED.sub("", page.read_text(encoding="utf-8"))
        for link in (item for item, _ in LINK.findall(text)):
            target = (page.parent / link.partition("#")[0]).resolve()
            if target.suffix == ".md" and target.is_file() and target not in reached:
                reached.add(target)
                waiting.append(target)

    assert (
        sorted(str(page.relative_to(root)) for page in (root / "docs").rglob("*.md") if page not in reached)
        == []
    )


def test_the_front_page_links_every_page_that_a_reader_may_look_for(root: Path) -> None:
    front = root / "docs/README.md"
    links = {
        (front.parent / (item or other).partition("#")[0]).resolve()
        for item, other in LINK.findall(FENCED.sub("", front.read_text(encoding="utf-8")))
    }
    pages = {
        page
        for folder in ("how-to", "production", "explain", "reference")
        for page in (root / "docs" / folder).rglob("*.md")
    }

    assert sorted(str(page.relative_to(root)) for page in pages - links) == []


def test_the_tests_that_back_the_table_of_guarantees_exist(root: Path) -> None:
    page = (root / "docs/explain/guarantees.md").read_text(encoding="utf-8")
    missing = [
        f"{file}::{name}"
        for file, name in TEST.findall(page)
        if not (root / file).is_file()
        or (name and f"def {name}(" not in (root / file).read_text(encoding="utf-8"))
    ]

    assert TEST.findall(page)
    assert missing == []
