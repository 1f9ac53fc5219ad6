"""The parse context of a test file: the positions of its values, and the findings so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.diagnostics.finding import Finding, Span
from millstream.diagnostics.spec_codes import build_finding
from millstream.pipeline.introspection import fields_by_key, find_nearest
from millstream.pipeline.load.value_phrases import describe_value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.pipeline.load.document import Path, YamlDocument
    from millstream.spec.base import Spec

_MOST_NAMES = 12


class ParseContext:
    """The document of a test file and the findings about it, in the order of detection."""

    def __init__(self, document: YamlDocument) -> None:
        self.document = document
        self.findings: list[Finding] = [*document.findings]

    def span(self, path: Path) -> Span:
        """Return the span of a scalar, of the key of a list or mapping, or of the nearest existing parent."""
        document = self.document
        for end in range(len(path), 0, -1):
            prefix = path[:end]
            if prefix in document.scalars:
                return document.values[prefix]
            if prefix in document.keys:
                return document.keys[prefix]
            if prefix in document.values:
                return document.values[prefix]
        return Span.point(document.file)

    def key(self, path: Path) -> Span:
        """Return the span of the key at a path, or the result of `span` if there is none."""
        return self.document.keys.get(path) or self.span(path)

    def add_finding(self, code: str, message: str, path: Path, *, why: str = "", fix: str = "") -> None:
        """Add a finding about the value at a path."""
        self.findings.append(build_finding(code, message, self.span(path), why=why, fix=fix))

    def add_key_finding(self, code: str, message: str, path: Path, *, why: str = "", fix: str = "") -> None:
        """Add a finding about the key at a path."""
        self.findings.append(build_finding(code, message, self.key(path), why=why, fix=fix))

    def add_type_finding(self, label: str, accepted: str, value: Any, path: Path, fix: str = "") -> None:
        """Add the finding that a value has the wrong type for its key."""
        if value is None:
            self.add_finding("MS003", f"{label} is empty", path, fix=fix or f"give it {accepted}")
        else:
            self.add_finding(
                "MS003", f"{label} takes {accepted}, not {describe_value((), value, {})}", path, fix=fix
            )

    def mapping(self, label: str, value: Any, path: Path) -> dict[str, Any]:
        """Return the value if it is a mapping; otherwise add a finding and return an empty one."""
        if isinstance(value, dict):
            return value
        self.add_type_finding(label, "a mapping", value, path)
        return {}

    def items(self, label: str, value: Any, path: Path) -> list[Any]:
        """Return the value if it is a list; otherwise add a finding and return an empty one."""
        if isinstance(value, list):
            return value
        self.add_type_finding(label, "a list", value, path)
        return []

    def drop_unknown_keys(self, label: str, value: Any, path: Path, form: type[Spec]) -> dict[str, Any]:
        """Return the mapping without unknown keys, and add a finding for each of them."""
        known = list(fields_by_key(form))
        accepted = {}
        for key, item in self.mapping(label, value, path).items():
            if key in known:
                accepted[key] = item
                continue
            nearest_key = find_nearest(key, known)
            fix = f"write '{nearest_key}'" if nearest_key else f"remove it; known keys: {', '.join(known)}"
            span = self.key((*path, key))
            edit = self.document.rename_key(span, nearest_key) if nearest_key else None
            message = f"{label} has no key '{key}'"
            self.findings.append(build_finding("MS002", message, span, fix=fix, edit=edit))
        return accepted

    def absent(
        self, message: str, word: str, known: Iterable[str], path: Path, *, is_key: bool = True
    ) -> None:
        """Add the finding that the pipeline has no such name, and suggest the nearest one."""
        names = list(dict.fromkeys(known))
        nearest_name = find_nearest(word, names)
        listed = ", ".join(names[:_MOST_NAMES]) + (", …" if len(names) > _MOST_NAMES else "")
        fix = f"write '{nearest_name}'" if nearest_name else (f"name one of {listed}" if names else "")
        (self.add_key_finding if is_key else self.add_finding)("MS018", message, path, fix=fix)
