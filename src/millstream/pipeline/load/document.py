"""Read a YAML file into plain data and record the position of each key and value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import yaml

from millstream.diagnostics.finding import Edit, Finding, Span
from millstream.diagnostics.lines import TextLines
from millstream.diagnostics.spec_codes import build_finding
from millstream.pipeline.load.yaml_errors import explain_yaml_error
from millstream.pipeline.load.yaml_scalars import Scalar, resolve_scalar

Path = tuple[str | int, ...]

# A spec of a hundred queries has some 40 KiB and 5,000 values. A file beyond these limits is a mistake or an
# attack (a file of aliases of aliases grows without bound when it is read as data).
MOST_BYTES = 1 << 20
MOST_DEPTH = 50
MOST_VALUES = 100_000

_TEXT = "tag:yaml.org,2002:str"
_PLAIN_TAGS = frozenset({_TEXT, "!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"})


@dataclass
class YamlDocument:
    """A YAML file as plain data, with the position of each key and value.

    `data` is None if the file could not be read; `findings` then contain the reason.
    """

    file: str
    text: str
    data: Any = None
    values: dict[Path, Span] = field(default_factory=dict)
    keys: dict[Path, Span] = field(default_factory=dict)
    scalars: dict[Path, Scalar] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def is_unreadable(self) -> bool:
        """Whether the file could not be read as YAML at all."""
        return any(item.code == "MS001" for item in self.findings)

    def rename_key(self, span: Span, name: str) -> Edit | None:
        """Return the edit that renames the key at a span; None if it is not written there as a plain word."""
        lines = self.text.splitlines()
        if not 0 < span.line == span.end_line <= len(lines):
            return None
        line = lines[span.line - 1]
        before, after = line[: span.column - 1], line[span.end_column - 1 :]
        if not line[span.column - 1 : span.end_column - 1].isidentifier():
            return None
        return Edit(span.file, span.line - 1, (f"{before}{name}{after}",), drop=1, is_safe=False)


def parse_yaml(file: str, text: str) -> YamlDocument:
    """Parse a text as YAML 1.2. Never raises: errors are in `findings`."""
    document = YamlDocument(file, text)
    lines = TextLines(text)
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        span = lines.span(file, error.start, error.start + 1)
        document.findings.append(
            build_finding("MS001", "the file contains half of a surrogate pair, which is not text", span)
        )
        return document
    if size > MOST_BYTES:
        message = f"the file has {size:,} bytes; a spec may have at most {MOST_BYTES:,}"
        document.findings.append(
            build_finding("MS001", message, Span.point(file), fix="move data out of the spec")
        )
        return document
    loader = yaml.CSafeLoader(text)
    reader = _DocumentReader(loader, document, lines)
    try:
        document.data = reader.read_document()
    except yaml.YAMLError as error:
        document.findings.append(explain_yaml_error(error, file, lines))
    except _Refused as refusal:
        document.findings.append(refusal.finding)
    finally:
        loader.dispose()
    if document.is_unreadable:
        document.data = None
    return document


class _Refused(Exception):
    """Raised to stop reading; `finding` contains the reason."""

    def __init__(self, message: str, span: Span, fix: str = "") -> None:
        super().__init__(message)
        self.finding = build_finding("MS001", message, span, fix=fix)


class _DocumentReader:
    """Builds data and positions together in one traversal of the parser's events.

    It reads events instead of calling `compose`, whose C code recurses as deep as the text is nested and can crash
    the process.
    """

    def __init__(self, loader: Any, document: YamlDocument, lines: TextLines) -> None:
        self.loader, self.document, self.lines = loader, document, lines
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.count = 0

    def read_document(self) -> Any:
        """Read the one document in the file and return its value."""
        self.loader.get_event()
        if self.loader.check_event(yaml.StreamEndEvent):
            raise _Refused(
                "the file is empty", Span.point(self.document.file), "write one with 'millstream init'"
            )
        self.loader.get_event()
        data = self.value((), self.loader.get_event(), 0)
        self.loader.get_event()
        if not self.loader.check_event(yaml.StreamEndEvent):
            second = self.span(self.loader.get_event())
            raise _Refused(
                "a second document begins here; a spec is a single document", second, "remove the '---' line"
            )
        return data

    def span(self, event: Any) -> Span:
        """Return the span of an event's text, without trailing white space."""
        start, stop = event.start_mark.index, event.end_mark.index
        stop = start + len(self.document.text[start:stop].rstrip())
        return self.lines.span(self.document.file, start, stop)

    def value(self, path: Path, event: Any, depth: int) -> Any:
        """Read the value that begins with `event`, and record the positions of everything in it."""
        self.count += 1
        if depth > MOST_DEPTH:
            raise _Refused(f"values are nested more than {MOST_DEPTH} deep", self.span(event))
        if isinstance(event, yaml.AliasEvent):
            return self.alias(path, event)
        if event.tag is not None and event.tag not in _PLAIN_TAGS:
            tag = str(event.tag).replace("tag:yaml.org,2002:", "!!")
            raise _Refused(
                f"the tag {tag} is not supported; a spec is plain data", self.span(event), f"remove {tag}"
            )
        before = self.count
        if isinstance(event, yaml.ScalarEvent):
            data = self.scalar(path, event)
        else:
            data = self.collection(path, event, depth)
        if event.anchor is not None:
            self.anchors[event.anchor] = (data, self.count - before + 1)
        if self.count > MOST_VALUES:
            raise _Refused(f"the file contains more than {MOST_VALUES:,} values", self.span(event))
        return data

    def alias(self, path: Path, event: Any) -> Any:
        """Return the value of an alias, counted as if it were written again."""
        span = self.span(event)
        if event.anchor not in self.anchors:
            raise _Refused(f"*{event.anchor} has no anchor before it", span, f"define &{event.anchor} first")
        data, size = self.anchors[event.anchor]
        self.count += size
        if self.count > MOST_VALUES:
            raise _Refused(f"with its aliases the file contains more than {MOST_VALUES:,} values", span)
        self.document.values[path] = span
        return data

    def scalar(self, path: Path, event: Any) -> Any:
        """Read a scalar and record its position."""
        start, stop = event.start_mark.index, event.end_mark.index
        style = event.style or ""
        self.document.scalars[path] = Scalar(event.value, style, start, stop)
        # An empty value has no text, so the position of its key is used.
        self.document.values[path] = (
            self.span(event) if stop > start else self.document.keys.get(path, self.span(event))
        )
        plain = not style and event.tag is None and event.implicit[0]
        return resolve_scalar(event.value) if plain else event.value

    def collection(self, path: Path, event: Any, depth: int) -> Any:
        """Read a mapping or list and record the positions of its parts."""
        start = event.start_mark.index
        data: Any
        if isinstance(event, yaml.MappingStartEvent):
            data = {}
            while not self.loader.check_event(yaml.MappingEndEvent):
                self.pair(path, data, depth)
        else:
            data = []
            while not self.loader.check_event(yaml.SequenceEndEvent):
                data.append(self.value((*path, len(data)), self.loader.get_event(), depth + 1))
        stop = self.loader.get_event().end_mark.index
        stop = start + len(self.document.text[start:stop].rstrip())
        self.document.values[path] = self.lines.span(self.document.file, start, stop)
        return data

    def pair(self, path: Path, data: dict[str, Any], depth: int) -> None:
        """Read one key of a mapping and its value; a repeated key is a finding and is left out."""
        event = self.loader.get_event()
        span = self.span(event)
        if not isinstance(event, yaml.ScalarEvent):
            raise _Refused(
                "a key must be a scalar, not a mapping or list", span, "put quotes around it if it is text"
            )
        key = event.value
        if event.anchor is not None:
            self.anchors[event.anchor] = (key, 1)
        if key == "<<" and not event.style:
            raise _Refused("merge keys ('<<') are not supported", span, "write the keys out")
        if key not in data:
            self.document.keys[(*path, key)] = span
            data[key] = self.value((*path, key), self.loader.get_event(), depth + 1)
            return
        self.document.findings.append(
            build_finding(
                "MS005",
                f"the key '{key}' occurs twice",
                span,
                label=f"first on line {self.document.keys[(*path, key)].line}",
                why="one of the two would be ignored",
                fix="keep only one of them",
            )
        )
        # Read the value without recording its position: the first one's counts.
        self.value(("", *path, key), self.loader.get_event(), depth + 1)
