"""Build the documentation site into build/site, from the pages of the repository: `make site`.

The pages are copied to build/pages with the folders that they have here, so that their links stay right. Pages of
findings and examples are added. MkDocs then builds them strictly: a broken link or anchor ends the build.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from millstream import __version__
from millstream.analysis.rule_pages import find_pages
from millstream.cli.explain.page_rendering import page_for_readers
from millstream.pipeline.export.graph_export import graph_as_text
from millstream.pipeline.graph import PipelineGraph
from millstream.pipeline.spec_file import load_spec

ROOT = Path(__file__).parent.parent
PAGES, SITE = ROOT / "build" / "pages", ROOT / "build" / "site"
FOLDERS = ("docs", "examples")
FILES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE")
LINK = re.compile(r"(?P<head>!?\[[^\]]*\]\()(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
FENCE = re.compile(r"^```(\w+) ([^\s`]+)$", re.MULTILINE)
CODE_PAGES = set(find_pages().values())
MARKER = re.compile(r"(?:[-*+]|\d+\.) +")


def copy_pages() -> None:
    """Copy every page and what it links to, and add the pages of findings and examples."""
    shutil.rmtree(PAGES, ignore_errors=True)
    sources = [ROOT / name for name in FILES]
    for folder in FOLDERS:
        sources += sorted((ROOT / folder).rglob("*.md"))
    for source in sources:
        text = source.read_text(encoding="utf-8")
        write_page(source.relative_to(ROOT), adapt(text, source))
    for code, file in find_pages().items():
        text = page_for_readers(file.read_text(encoding="utf-8"))
        path = Path("docs/reference/rules", f"{code.lower()}.md")
        write_page(path, adapt(text, file, ROOT / path))
    for spec in sorted((ROOT / "examples").glob("*/pipeline.yml")):
        add_example(spec)


def write_page(path: Path, text: str) -> None:
    """Write one page."""
    (PAGES / path).parent.mkdir(parents=True, exist_ok=True)
    (PAGES / path).write_text(text, encoding="utf-8")


def adapt(text: str, source: Path, place: Path | None = None) -> str:
    """Convert a page from GitHub's Markdown to MkDocs', and copy the files that it links to.

    `place` is the page's place on the site, if that differs from its place in the repository.
    """
    text = FENCE.sub(r'```\1 title="\2"', text)
    text = "\n".join(indent_lists(text.split("\n")))
    return LINK.sub(lambda match: link(match, source, place or source), text)


def link(match: re.Match[str], source: Path, place: Path) -> str:
    """Return a link that the site can follow. A folder's link leads to its page, or becomes text."""
    path = match["path"]
    if re.match(r"[a-z]+:", path):
        return match[0]
    target = (source.parent / path).resolve()
    if not target.is_relative_to(ROOT) or not target.exists():
        return match[0]
    if target.is_dir():
        target /= "README.md"
        if not target.is_file():
            return match["head"].strip("![](")
    if target in CODE_PAGES:
        target = ROOT / "docs/reference/rules" / f"{target.name[:5]}.md"
    elif target.suffix != ".md":
        copied = PAGES / target.relative_to(ROOT)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(target, copied)
    return f"{match['head']}{os.path.relpath(target, place.parent)}{match['anchor'] or ''})"


def indent_lists(lines: list[str]) -> list[str]:
    """Indent what belongs to an item of a list by four spaces, as Python-Markdown needs it."""
    out: list[str] = []
    index, fence = 0, False
    while index < len(lines):
        line = lines[index]
        index += 1
        fence ^= line.startswith("```")
        marker = None if fence else MARKER.match(line)
        if marker is None:
            out.append(line)
            continue
        if out and out[-1].strip() and not MARKER.match(out[-1]) and not out[-1].startswith("    "):
            out.append("")
        width, inner = len(marker[0]), [line[len(marker[0]) :]]
        while index < len(lines) and belongs(lines, index, width):
            inner.append(lines[index][width:] if lines[index].startswith(" " * width) else lines[index])
            index += 1
        first, *rest = indent_lists(inner)
        out.append(f"{marker[0].rstrip()} {first}")
        out += [f"    {text}" if text.strip() else "" for text in rest]
    return out


def belongs(lines: list[str], index: int, width: int) -> bool:
    """Return whether a line belongs to the list item before it: it is indented, or continues its paragraph."""
    line = lines[index]
    if line.startswith(" " * width):
        return True
    if not line.strip():
        following = next((text for text in lines[index:] if text.strip()), "")
        return following.startswith(" " * width)
    return (
        bool(lines[index - 1].strip()) and not MARKER.match(line) and not line.startswith(("#", "```", "|"))
    )


def add_example(spec: Path) -> None:
    """Append the graph and the spec of an example to its page."""
    page = PAGES / "examples" / spec.parent.name / "README.md"
    pipeline = load_spec(
        spec, {"KAFKA": "localhost:9092", "POSTGRES_URL": "postgresql://localhost/shop"}, ()
    ).pipeline
    graph = "" if pipeline is None else graph_as_text(PipelineGraph.of(pipeline))
    graph = graph.replace(f"{spec.parent}/", "")
    with page.open("a", encoding="utf-8") as file:
        if graph:
            file.write(f"\n## Its graph\n\n```text\n{graph}```\n")
        file.write(f'\n## Its spec\n\n```yaml title="pipeline.yml"\n{spec.read_text(encoding="utf-8")}```\n')


def navigation(entries: list[Any]) -> list[Any]:
    """Return the navigation with the pages of each folder that it names."""
    filled = []
    for entry in entries:
        ((title, content),) = entry.items()
        if isinstance(content, list):
            filled.append({title: navigation(content)})
        elif content.endswith("/"):
            filled.append({title: list_folder(content)})
        else:
            filled.append({title: content})
    return filled


def list_folder(folder: str) -> list[str]:
    """Return the pages of a folder, its own page first."""
    own = PAGES / f"{folder.rstrip('/')}.md"
    pages = [
        page
        for page in sorted((PAGES / folder).rglob("*.md"))
        if page.name != "README.md" or page.parent != PAGES / folder
    ]
    first = [own] if own.is_file() else [PAGES / folder / "README.md"]
    return [str(page.relative_to(PAGES)) for page in [*first, *pages] if page.is_file()]


def config() -> dict[str, Any]:
    """Return the settings of MkDocs. Nothing is loaded from other servers."""
    return {
        "site_name": f"Millstream {__version__}",
        "docs_dir": str(PAGES),
        "site_dir": str(SITE),
        "use_directory_urls": False,
        "theme": {
            "name": "material",
            "font": False,
            "features": [
                "navigation.tabs",
                "navigation.top",
                "search.highlight",
                "content.code.copy",
                "toc.follow",
            ],
            "palette": [
                {
                    "media": f"(prefers-color-scheme: {scheme})",
                    "scheme": name,
                    "primary": "blue grey",
                    "toggle": {"icon": "material/theme-light-dark", "name": "Change the colours"},
                }
                for scheme, name in (("light", "default"), ("dark", "slate"))
            ],
        },
        "extra": {"generator": False},
        "plugins": ["search"],
        "markdown_extensions": [
            "tables",
            "attr_list",
            {"toc": {"permalink": True, "slugify": "SLUGIFY"}},
            "pymdownx.superfences",
            {"pymdownx.highlight": {"anchor_linenums": False}},
            {"pymdownx.tasklist": {"custom_checkbox": True}},
        ],
        "validation": {
            "nav": {"omitted_files": "warn", "not_found": "warn"},
            "links": {"not_found": "warn", "anchors": "warn", "unrecognized_links": "warn"},
        },
        "nav": navigation(yaml.safe_load((ROOT / "docs/site.yml").read_text(encoding="utf-8"))),
    }


def main() -> int:
    """Build the site; 1 if there is a warning."""
    copy_pages()
    settings = yaml.safe_dump(config(), sort_keys=False)
    settings = settings.replace(
        "SLUGIFY", "!!python/object/apply:pymdownx.slugs.slugify {kwds: {case: lower}}"
    )
    file = ROOT / "build" / "mkdocs.yml"
    file.write_text(settings, encoding="utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(file)]
    code = subprocess.run(command, check=False, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}).returncode
    if code == 0:
        print(f"the site is {SITE / 'index.html'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
