"""The page of the engine's parts: for each an example, a test and a page that exist.

`docs/reference/coverage.yml` says which. What it names and is not there ends the generator, so that the page cannot
lie: beside each example stand words of it that show the part, and they must be found in one of its files.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import yaml

from generators.layout import MADE, OUT, ROOT, escaped, joined

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DATA = OUT / "coverage.yml"
INTRO = """\
This page lists the parts of Spark's engine that a pipeline can use. For each part it names an example, a test that
fails without the part, and the page that explains it. A dash means that no example shows the part yet."""
NONE = "none"
FILES = (".yml", ".py", ".sql", ".md", ".ipynb")


class NotThere(Exception):
    """The data file names what does not exist; a sentence a line."""


@dataclass(frozen=True)
class Part:
    """A part of the engine: examples with their words, tests as `path::name`, pages by their path from the root."""

    what: str
    examples: Mapping[str, str] | None
    """None where it is said that there is none."""
    tests: tuple[str, ...]
    pages: tuple[str, ...]

    @classmethod
    def of(cls, what: str, said: dict[str, Any]) -> Part:
        """A part as the file says it: `example` a mapping or `none`, each of `test` and `page` one or a list."""
        unknown = set(said) - {"example", "test", "page"}
        if unknown:
            raise NotThere(f"{what}: there is no key {', '.join(sorted(unknown))}")
        value = said.get("example") or {}
        return cls(
            what,
            None
            if value == NONE
            else value
            if isinstance(value, dict)
            else dict.fromkeys(_several(value), ""),
            _several(said.get("test")),
            _several(said.get("page")),
        )


@dataclass(frozen=True)
class Pages:
    """The pages of a repository, those that are about to be written among them."""

    root: Path
    made: Mapping[Path, str]

    def text(self, path: str) -> str:
        """A page's text; empty when there is none."""
        if (value := self.made.get(Path(path))) is not None:
            return value
        file = self.root / path
        return file.read_text(encoding="utf-8") if file.is_file() else ""


def coverage_page(root: Path = ROOT, made: Mapping[Path, str] = MappingProxyType({})) -> str:
    """The page. Raises NotThere for an example, a test or a page that does not exist, and for a part without one.

    `made` are pages that are about to be written, by their path from the root.
    """
    pages = Pages(root, made)
    data = yaml.safe_load((root / DATA).read_text(encoding="utf-8"))
    error: list[str] = []
    parts = [f"# Parts of Spark that Millstream covers\n\n{MADE}\n\n{INTRO}"]
    for heading, output in data["parts"].items():
        rows = [Part.of(what, item) for what, item in output.items()]
        error += [sentence for part in rows for sentence in missing(part, pages)]
        head = ["| part | example | test | page |", "| --- | --- | --- | --- |"]
        parts += [f"## {heading}", "\n".join([*head, *(line(part, pages) for part in rows)])]
    if error:
        raise NotThere("\n".join(error))
    return joined(parts)


def missing(part: Part, pages: Pages) -> Iterator[str]:
    """What of a part is not there."""
    root = pages.root
    for name, words in (part.examples or {}).items():
        if not exists(name, root):
            yield f"{part.what}: there is no example '{name}'"
        elif not words or not shows(root / "examples" / name, words):
            yield f"{part.what}: the example '{name}' has no '{words}' that shows it"
    if part.examples is not None and not part.examples:
        yield f"{part.what}: no example is named, nor said that there is none"
    for test in part.tests:
        if test.partition("::")[2] not in tests(root / test.partition("::")[0]):
            yield f"{part.what}: there is no test {test}"
    if not part.tests:
        yield f"{part.what}: no test is named"
    for page in part.pages:
        path, _, anchor = page.partition("#")
        if not pages.text(path):
            yield f"{part.what}: there is no page {path}"
        elif anchor and anchor not in anchors(pages.text(path)):
            yield f"{part.what}: {path} has no heading #{anchor}"
    if not part.pages:
        yield f"{part.what}: no page is named"


def exists(example: str, root: Path) -> bool:
    """Is there such an example?"""
    return (root / "examples" / example / "pipeline.yml").is_file()


def shows(folder: Path, words: str) -> bool:
    """Are the words in one of an example's files?"""
    files = [file for file in folder.rglob("*") if file.suffix in FILES]
    return any(words in file.read_text(encoding="utf-8") for file in files)


@cache
def tests(file: Path) -> frozenset[str]:
    """The tests of a file: functions of Python, or cases of a test file."""
    if not file.is_file():
        return frozenset()
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        return frozenset(item.name for item in ast.parse(text).body if isinstance(item, ast.FunctionDef))
    return frozenset(yaml.safe_load(text)["tests"])


def anchors(text: str) -> frozenset[str]:
    """The anchors of a page's headings."""
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads)


def line(part: Part, pages: Pages) -> str:
    """A part's line of its table."""
    text = ", ".join(f"[{name}](../../examples/{name}/README.md)" for name in part.examples or ()) or "-"
    proved = "<br>".join(
        f"[{test.partition('::')[2].removeprefix('test_').replace('_', ' ')}](../../{test.partition('::')[0]})"
        for test in part.tests
    )
    messages = ", ".join(f"[{title(pages.text(page.partition('#')[0]))}]({way(page)})" for page in part.pages)
    return f"| {escaped(part.what)} | {text} | {proved} | {messages} |"


def way(page: str) -> str:
    """The way to a page from docs/reference."""
    return page.removeprefix("docs/reference/") if page.startswith("docs/reference/") else f"../../{page}"


def title(text: str) -> str:
    """A page's first heading."""
    return text.partition("\n")[0].removeprefix("# ")


def _several(said: Any) -> tuple[str, ...]:
    return () if said is None else (said,) if isinstance(said, str) else tuple(said)
