"""A test file under reading: where each value stands, and all that is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.diagnostics.catalogue import finding
from millstream.diagnostics.finding import Finding, Span
from millstream.pipeline.describe import fields, nearest
from millstream.pipeline.wording import given

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.pipeline.document import Document, Path
    from millstream.spec.base import Spec

_MOST_NAMES = 12


class Ground:
    """The document of a test file and the findings about it, in the order they come up."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.findings: list[Finding] = [*document.findings]

    def span(self, path: Path) -> Span:
        """A single value, or the key of one that holds others; what is around it where it is not written."""
        document = self.document
        for end in range(len(path), 0, -1):
            place = path[:end]
            if place in document.scalars:
                return document.values[place]
            if place in document.keys:
                return document.keys[place]
            if place in document.values:
                return document.values[place]
        return Span.point(document.file)

    def key(self, path: Path) -> Span:
        """The key at a place, or what `span` gives where there is none."""
        return self.document.keys.get(path) or self.span(path)

    def tell(self, code: str, message: str, path: Path, *, why: str = "", fix: str = "") -> None:
        """Add a finding about the value at a place."""
        self.findings.append(finding(code, message, self.span(path), why=why, fix=fix))

    def tell_key(self, code: str, message: str, path: Path, *, why: str = "", fix: str = "") -> None:
        """Add a finding about the key at a place."""
        self.findings.append(finding(code, message, self.key(path), why=why, fix=fix))

    def not_this(self, who: str, wanted: str, value: Any, path: Path, fix: str = "") -> None:
        """Add the finding that a value is not what its key takes."""
        if value is None:
            self.tell("MS003", f"{who} is empty", path, fix=fix or f"give it {wanted}")
        else:
            self.tell("MS003", f"{who} takes {wanted}, not {given((), value, {})}", path, fix=fix)

    def mapping(self, who: str, value: Any, path: Path) -> dict[str, Any]:
        """The value if it is keys with values; otherwise a finding, and nothing."""
        if isinstance(value, dict):
            return value
        self.not_this(who, "keys with values", value, path)
        return {}

    def items(self, who: str, value: Any, path: Path) -> list[Any]:
        """The value if it is a list; otherwise a finding, and nothing."""
        if isinstance(value, list):
            return value
        self.not_this(who, "a list", value, path)
        return []

    def known(self, who: str, value: Any, path: Path, form: type[Spec]) -> dict[str, Any]:
        """The mapping without keys that nothing reads, each of which is a finding."""
        known = list(fields(form))
        kept = {}
        for key, item in self.mapping(who, value, path).items():
            if key in known:
                kept[key] = item
                continue
            near = nearest(key, known)
            fix = f"write '{near}'" if near else f"remove it; known here: {', '.join(known)}"
            self.tell_key("MS002", f"{who} has no key '{key}'", (*path, key), fix=fix)
        return kept

    def absent(
        self, message: str, word: str, known: Iterable[str], path: Path, *, is_key: bool = True
    ) -> None:
        """Add the finding that the pipeline has nothing of a name, with the nearest one there is."""
        names = list(dict.fromkeys(known))
        near = nearest(word, names)
        listed = ", ".join(names[:_MOST_NAMES]) + (", …" if len(names) > _MOST_NAMES else "")
        fix = f"write '{near}'" if near else (f"name one of {listed}" if names else "")
        (self.tell_key if is_key else self.tell)("MS018", message, path, fix=fix)
