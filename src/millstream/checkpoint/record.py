"""What made a checkpoint: operators, sources, sinks, settings and versions, written beside Spark's own files."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.diagnostics.failure import CannotGoOn

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Operator:
    """One operator of a query's analysed plan.

    `kind` is Spark's name of it (Aggregate, Join). `text` is what it does with names and no expression ids;
    `shape` the same with columns by position, so that a renamed column does not count as a change.
    """

    kind: str
    text: str
    shape: str

    @property
    def fingerprint(self) -> str:
        """A short hash of what it does."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Record:
    """Everything about a query that a later version is compared with."""

    query: str
    query_id: str
    operators: tuple[Operator, ...]
    sources: tuple[dict[str, str], ...]
    """One entry a source in plan order: its name in the spec, its kind, what it reads, topic ids; `folder`."""
    sinks: tuple[dict[str, str], ...]
    """One entry a sink: its key in the sink's own ledger, its kind, its target."""
    output_mode: str
    pinned: dict[str, str]
    """Settings that Spark keeps in the checkpoint whatever a later session says."""
    unpinned: dict[str, str]
    """Settings that change results and that Spark does not keep."""
    versions: dict[str, str]
    code: dict[str, str] = field(default_factory=dict)
    """Hashes of the spec, its SQL files and its Python files."""

    def log(self, index: int) -> int:
        """The number of the folder in `sources/` that a source has by its place in the plan.

        A view that is united with itself has its source at two places; Spark reads it once, and keeps one folder.
        """
        told = self.sources[index] if index < len(self.sources) else {}
        return int(told.get("folder", index))

    def to_json(self) -> str:
        """The record as indented JSON, with each operator's fingerprint."""
        data = asdict(self)
        for told, operator in zip(data["operators"], self.operators, strict=True):
            told["fingerprint"] = operator.fingerprint
        return json.dumps(data, indent=1, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Record:
        """Read what `to_json` wrote."""
        data: dict[str, Any] = json.loads(text)
        operators = tuple(
            Operator(kind=told["kind"], text=told["text"], shape=told["shape"])
            for told in data.pop("operators")
        )
        return cls(
            operators=operators,
            sources=tuple(data.pop("sources")),
            sinks=tuple(data.pop("sinks")),
            **data,
        )


def read(checkpoint: Path) -> Record | None:
    """The record of a checkpoint, or None when it has none."""
    file = checkpoint / "_millstream" / "record.json"
    if not file.exists():
        return None
    try:
        return Record.from_json(file.read_text())
    except (ValueError, KeyError, TypeError) as torn:
        raise CannotGoOn(f"{file} cannot be read: {torn}", "delete the file; it is written again") from torn


def write(checkpoint: Path, record: Record) -> None:
    """Write the record; one that differs is kept beside it as `record-<n>.json`, oldest first."""
    folder = checkpoint / "_millstream"
    folder.mkdir(parents=True, exist_ok=True)
    file, text = folder / "record.json", record.to_json()
    if file.exists():
        before = file.read_text()
        if before == text:
            return
        number = len(list(folder.glob("record-*.json"))) + 1
        _replace(folder / f"record-{number}.json", before)
    _replace(file, text)


def _replace(file: Path, text: str) -> None:
    """Write a file so that a crash leaves the old one or the whole new one."""
    half = file.with_suffix(".half")
    half.write_text(text)
    half.replace(file)
