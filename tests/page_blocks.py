"""The pieces of specs that pages show, each put where it belongs: a pipeline around it.

A block that is less than a pipeline is an entry under a source or a sink, a mapping of names under `sources`, `views`
or `queries`, or a list under `to`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from millstream.connectors import registry
from millstream.pipeline.introspection import fields_by_key
from millstream.pipeline.model import Pipeline

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT.glob("*.md")),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "examples").glob("**/README.md"),
    *(ROOT / "src/millstream/connectors").glob("*/*.md"),
]
BLOCK = re.compile(r"^( *)```yaml[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
# A page's block of Python that begins with a comment naming its file.
PYTHON = re.compile(r"^```python\n(# (\w+\.py)\n.*?)^```", re.MULTILINE | re.DOTALL)
# A test file and no spec: a key `tests` at the left edge.
TESTS = re.compile(r"^tests:", re.MULTILINE)
# A manifest of Kubernetes and no spec.
MANIFEST = re.compile(r"^apiVersion:", re.MULTILINE)
TICKS = {"rate": 1}
VALUES = {"KAFKA": "localhost:9092", "POSTGRES_URL": "postgresql://localhost:5432/shop"}


def blocks() -> Iterator[Any]:
    """The pieces of specs, each with its page."""
    others = (TESTS, MANIFEST)
    return (block for block in _blocks() if not any(other.search(block.values[1]) for other in others))


def shown_tests() -> Iterator[Any]:
    """The test files that pages show, each with its page."""
    return (block for block in _blocks() if TESTS.search(block.values[1]))


def project_of(page: Path) -> Path:
    """The project that a page's tests stand in: its own, the tutorial's, else the shop."""
    if (page.parent / "pipeline.yml").is_file():
        return page.parent
    return ROOT / "examples" / ("starter" if page.parent.name == "tutorial" else "ecommerce")


def _blocks() -> Iterator[Any]:
    for page in sorted(set(PAGES)):
        text = page.read_text(encoding="utf-8")
        # The prose of a connector's page stands in that connector's folder.
        if page.parent.name in ("sources", "sinks"):
            continue
        for match in BLOCK.finditer(text):
            line = text.count("\n", 0, match.start()) + 2
            inside = "".join(part.removeprefix(match[1]) for part in match[2].splitlines(keepends=True))
            yield pytest.param(page, inside, id=f"{page.relative_to(ROOT)}:{line}")


def candidates(page: Path, text: str) -> list[str]:
    """The pipelines that a block may be a part of; one of them must check."""
    data = yaml.safe_load(text)
    if isinstance(data, list):
        return [with_sinks(data, mode) for mode in ("append", "update", "complete")]
    if set(data) <= set(fields_by_key(Pipeline)):
        return [text if {"name", "sources", "queries"} <= set(data) else completed(data)]
    actual = []
    if set(data) & set(registry.sources()) and page.name != "sink.md":
        actual.append(completed({"sources": {"rows": data}}))
    if set(data) & set(registry.sinks()) and page.name != "source.md":
        actual += [with_sinks(data, mode) for mode in ("append", "update", "complete")]
    return actual or [completed(by_section(data))]


def with_sinks(sinks: Any, mode: str) -> str:
    query = {"from": "rows", "output_mode": mode, "to": sinks}
    columns = "".join(f", CAST(value AS STRING) AS `{name}`" for name in sorted(listed(sinks)))
    view = f"SELECT *{columns} FROM ticks"
    return completed({"views": {"rows": view}, "queries": {"rows": query}})


def listed(value: Any) -> set[str]:
    """The words that stand in lists, as names of columns do, and the column that orders changes."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    words = {item for item in inside if isinstance(item, str)} if isinstance(value, list) else set()
    if isinstance(value, dict) and "sequence_by" in value:
        words.add(value["sequence_by"])
    return words.union(*(listed(item) for item in inside))


def by_section(named: dict[str, Any]) -> dict[str, Any]:
    """Named entries, each under the section whose keys it has."""
    result: dict[str, Any] = {}
    for name, entry in named.items():
        if isinstance(entry, str) or {"sql", "python", "file"} & set(entry):
            section = "views"
        else:
            section = "queries" if "to" in entry else "sources"
        result.setdefault(section, {})[name] = entry
    return result


def completed(data: dict[str, Any]) -> str:
    """A pipeline around a part of one."""
    sources = {"ticks": TICKS, **data.get("sources", {})}
    views = data.get("views", {})
    for view in views.values():
        if isinstance(view, dict) and view.get("from", "ticks") not in {**sources, **views}:
            sources[view["from"]] = stream(view["group_by"])
    queries = data.get("queries") or {
        name: {"to": {"console": {}}} for name, entry in {**sources, **views}.items() if not is_static(entry)
    }
    return yaml.safe_dump({"name": "page", **data, "sources": sources, "queries": queries}, sort_keys=False)


def stream(columns: list[str]) -> dict[str, Any]:
    """A source for a view that shows none: what it groups by, and an event time."""
    return {
        "kafka": {"bootstrap_servers": "localhost:9092", "subscribe": "any"},
        "schema": {**dict.fromkeys(columns, "string"), "event_time": "timestamp"},
        "watermark": {"event_time": "event_time", "delay_threshold": "1 minute"},
    }


def is_static(entry: Any) -> bool:
    return isinstance(entry, dict) and bool(entry.get("static"))


def surroundings(text: str, folder: Path) -> dict[str, str]:
    """Make what a block takes for granted, secret files and folders; give its variables values."""
    for name in re.findall(r"\$\{file:([^}]+)\}", text):
        secret = folder / name
        secret.parent.mkdir(parents=True, exist_ok=True)
        secret.write_text("secret")
        secret.chmod(0o600)
    for name in re.findall(r"\bdata/\w+", text):
        (folder / name).mkdir(parents=True, exist_ok=True)
    names = re.findall(r"\$\{([A-Za-z_]\w*)[}:]", text)
    return {name: VALUES.get(name, "value") for name in names}


def complete(page: Path, text: str, folder: Path) -> tuple[list[str], dict[str, str]]:
    """The pipelines that a block may be a part of, and their variables; fills the folder with what they need."""
    env = surroundings(text, folder)
    for inside, name in PYTHON.findall(page.read_text(encoding="utf-8")):
        (folder / name).write_text(inside)
    for module in page.parent.glob("*.py") if page.name == "README.md" else ():
        (folder / module.name).write_text(module.read_text(encoding="utf-8"))
    return candidates(page, text), env
