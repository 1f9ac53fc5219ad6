"""The files of a migrated project: the spec, the code of its views, and the page of what was moved."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from millstream.checking.scripts.interception import call_sites

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# Settings of a session that depend on the machine or the catalog of the old job.
_LOCAL_SETTINGS = ("checkpointLocation", "catalog", "extensions", "warehouse")


@dataclass
class MigratedProject:
    """The files of a project, by their names, and what of the script is not in them."""

    files: dict[str, str] = field(default_factory=dict)
    moved: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    """What the project does in another way than the script."""
    queries: dict[int, str] = field(default_factory=dict)
    """The name in the spec of each query that was moved, by its number in the script."""
    names: dict[str, str] = field(default_factory=dict)
    """The name in the spec of each source."""
    left: list[str] = field(default_factory=list)
    """What was not moved, with the reason."""


@dataclass
class ProjectFiles:
    """The parts of a project, from which its files are written. `origin` is the script or spec that is moved."""

    origin: Path
    project: MigratedProject
    sources: dict[str, Any] = field(default_factory=dict)
    views: dict[str, Any] = field(default_factory=dict)
    """Views that the spec describes; others are functions of the same name."""
    queries: dict[str, Any] = field(default_factory=dict)
    imports: dict[str, None] = field(default_factory=dict)
    definitions: dict[str, None] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)

    def write(self, name: str, conf: Mapping[str, str]) -> None:
        """Write the files into the project, without any if it has no query. Nothing is written to disk."""
        files = self.project.files
        if self.queries:
            files["pipeline.yml"] = self._spec(name, conf)
            if self.functions or self.definitions:
                files["transforms.py"] = self._transforms()
        files["MIGRATION.md"] = self._page()

    def _spec(self, name: str, conf: Mapping[str, str]) -> str:
        document: dict[str, Any] = {
            "name": make_identifier(name).replace("_", "-"),
            "sources": self.sources,
        }
        settings = {
            key: value
            for key, value in conf.items()
            if key.startswith("spark.sql.") and not any(word in key for word in _LOCAL_SETTINGS)
        }
        if settings:
            document["spark"] = settings
        if self.views:
            document["views"] = self.views
        document["queries"] = self.queries
        return dump_spec(document)

    def _transforms(self) -> str:
        head = f'"""Views of the pipeline, from {self.origin.name}."""\n\n'
        parts = ["\n".join(sorted(self.imports)), *self.definitions, *self.functions]
        return head + "\n\n\n".join(part for part in parts if part) + "\n"

    def _page(self) -> str:
        origin = call_sites.display_name(self.origin)
        parts = [f"# What was moved from {origin}"]
        for title, entries in (
            ("Moved", self.project.moved),
            ("Done differently", self.project.differences),
            ("Not moved", self.project.left),
        ):
            lines = [f"- {entry}" for entry in entries] or ["Nothing."]
            parts.append(f"## {title}\n\n" + "\n".join(lines))
        return "\n\n".join(parts) + "\n"


def dump_spec(document: Mapping[str, Any]) -> str:
    """Return a spec as YAML, with SQL as blocks of lines."""
    return yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


class _Dumper(yaml.SafeDumper):
    """Writes text of several lines, such as SQL, as a block."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)


def make_identifier(name: str) -> str:
    """Return a name that both Python and a spec accept."""
    text = re.sub(r"\W+", "_", name).strip("_").lower() or "query"
    return f"{text}_" if keyword.iskeyword(text) else f"q_{text}" if text[0].isdigit() else text
