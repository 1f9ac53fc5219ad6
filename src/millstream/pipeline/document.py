"""Read a pipeline file and keep where each value stands in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import yaml

from millstream.diagnostics.catalogue import finding
from millstream.diagnostics.finding import Finding, Span
from millstream.diagnostics.lines import Lines
from millstream.pipeline.complaint import complaint
from millstream.pipeline.scalar import Scalar, resolve

Path = tuple[str | int, ...]

# A spec of a hundred queries has some 40 KiB and 5,000 values; what is beyond these limits is a mistake or an
# attack (a file of aliases of aliases grows without bound when it is read as data).
MOST_BYTES = 1 << 20
MOST_DEPTH = 50
MOST_VALUES = 100_000

_TEXT = "tag:yaml.org,2002:str"
_PLAIN_TAGS = frozenset({_TEXT, "!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"})


@dataclass
class Document:
    """A YAML file as plain data, with the place of each key and value.

    `data` is None when the file could not be read; `findings` then say why.
    """

    file: str
    text: str
    data: Any = None
    values: dict[Path, Span] = field(default_factory=dict)
    keys: dict[Path, Span] = field(default_factory=dict)
    scalars: dict[Path, Scalar] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def unreadable(self) -> bool:
        """Could the file not be read as YAML at all?"""
        return any(found.code == "MS001" for found in self.findings)


def read(file: str, text: str) -> Document:
    """Read a text as YAML 1.2. Never raises: what is wrong stands in `findings`."""
    document = Document(file, text)
    lines = Lines(text)
    try:
        size = len(text.encode())
    except UnicodeEncodeError as wrong:
        span = lines.span(file, wrong.start, wrong.start + 1)
        document.findings.append(
            finding("MS001", "the file holds half of a surrogate pair, which is no text", span)
        )
        return document
    if size > MOST_BYTES:
        message = f"the file has {size:,} bytes; a spec may have {MOST_BYTES:,}"
        document.findings.append(finding("MS001", message, Span.point(file), fix="move data out of the spec"))
        return document
    loader = yaml.CSafeLoader(text)
    reading = _Reading(loader, document, lines)
    try:
        document.data = reading.whole()
    except yaml.YAMLError as wrong:
        document.findings.append(complaint(wrong, file, lines))
    except _Refused as refused:
        document.findings.append(refused.finding)
    finally:
        loader.dispose()
    if document.unreadable:
        document.data = None
    return document


class _Refused(Exception):
    """Reading stops: the finding says why."""

    def __init__(self, message: str, span: Span, fix: str = "") -> None:
        super().__init__(message)
        self.finding = finding("MS001", message, span, fix=fix)


class _Reading:
    """One pass over the parser's events, building data and places together.

    Events and not `compose`: its C code goes as deep as the text says and ends the process, not the call.
    """

    def __init__(self, loader: Any, document: Document, lines: Lines) -> None:
        self.loader, self.document, self.lines = loader, document, lines
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.count = 0

    def whole(self) -> Any:
        """The value of the one document in the file."""
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
            raise _Refused("a second document begins here; a spec is one", second, "remove the '---' line")
        return data

    def span(self, event: Any) -> Span:
        """The text of an event, without white space at its end."""
        start, stop = event.start_mark.index, event.end_mark.index
        stop = start + len(self.document.text[start:stop].rstrip())
        return self.lines.span(self.document.file, start, stop)

    def value(self, path: Path, event: Any, depth: int) -> Any:
        """The value that begins with `event`, with the places of all in it."""
        self.count += 1
        if depth > MOST_DEPTH:
            raise _Refused(f"values are nested more than {MOST_DEPTH} deep", self.span(event))
        if isinstance(event, yaml.AliasEvent):
            return self.alias(path, event)
        if event.tag is not None and event.tag not in _PLAIN_TAGS:
            tag = str(event.tag).replace("tag:yaml.org,2002:", "!!")
            raise _Refused(
                f"the tag {tag} is not read; a spec is plain data", self.span(event), f"remove {tag}"
            )
        before = self.count
        if isinstance(event, yaml.ScalarEvent):
            data = self.scalar(path, event)
        else:
            data = self.collection(path, event, depth)
        if event.anchor is not None:
            self.anchors[event.anchor] = (data, self.count - before + 1)
        if self.count > MOST_VALUES:
            raise _Refused(f"the file holds more than {MOST_VALUES:,} values", self.span(event))
        return data

    def alias(self, path: Path, event: Any) -> Any:
        """The value an alias stands for, counted as if it were written again."""
        span = self.span(event)
        if event.anchor not in self.anchors:
            raise _Refused(
                f"*{event.anchor} names no anchor that stands before it", span, f"put &{event.anchor} first"
            )
        data, size = self.anchors[event.anchor]
        self.count += size
        if self.count > MOST_VALUES:
            raise _Refused(f"with its aliases the file holds more than {MOST_VALUES:,} values", span)
        self.document.values[path] = span
        return data

    def scalar(self, path: Path, event: Any) -> Any:
        """A scalar, and its place."""
        start, stop = event.start_mark.index, event.end_mark.index
        style = event.style or ""
        self.document.scalars[path] = Scalar(event.value, style, start, stop)
        # An empty value has no text of its own: its key shows where it is.
        self.document.values[path] = (
            self.span(event) if stop > start else self.document.keys.get(path, self.span(event))
        )
        plain = not style and event.tag is None and event.implicit[0]
        return resolve(event.value) if plain else event.value

    def collection(self, path: Path, event: Any, depth: int) -> Any:
        """A mapping or list, and the places of its parts."""
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
        """One key of a mapping and its value; a key that was there already is a finding and is left out."""
        event = self.loader.get_event()
        span = self.span(event)
        if not isinstance(event, yaml.ScalarEvent):
            raise _Refused(
                "a key is a word; here it is a whole value", span, "put quotes around it if it is text"
            )
        key = event.value
        if event.anchor is not None:
            self.anchors[event.anchor] = (key, 1)
        if key == "<<" and not event.style:
            raise _Refused("merge keys ('<<') are not read", span, "write the keys out")
        if key not in data:
            self.document.keys[(*path, key)] = span
            data[key] = self.value((*path, key), self.loader.get_event(), depth + 1)
            return
        self.document.findings.append(
            finding(
                "MS005",
                f"the key '{key}' stands here twice",
                span,
                label=f"first on line {self.document.keys[(*path, key)].line}",
                why="one of the two would be ignored",
                fix="keep one of them",
            )
        )
        # Its place is not kept: the first one's counts.
        self.value(("", *path, key), self.loader.get_event(), depth + 1)
