"""Record next to Spark's files what wrote a checkpoint: operators, sources, sinks, settings and versions."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from millstream.checkpoint.atomic_file import write_durably
from millstream.checkpoint.recorded_plan import RecordedPlan
from millstream.diagnostics.failure import CheckpointError

if TYPE_CHECKING:
    from millstream.checkpoint.remote.path import CheckpointPath


@dataclass(frozen=True)
class RecordedOperator:
    """One operator of a query's analysed plan.

    `kind` is Spark's name of it (Aggregate, Join). `text` is what it does, with names and without expression ids.
    `shape` is the same with columns by position, so that a renamed column does not count as a change.
    """

    kind: str
    text: str
    shape: str

    @property
    def fingerprint(self) -> str:
        """A short hash of the operator's text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class QueryMetadata:
    """Everything about a query with which a later version is compared."""

    query: str
    query_id: str
    operators: tuple[RecordedOperator, ...]
    sources: tuple[dict[str, str], ...]
    """One entry per source in plan order: its name in the spec, its kind, what it reads, topic ids, `folder`."""
    sinks: tuple[dict[str, str], ...]
    """One entry per sink: its key in the sink's own ledger, its kind, its target.

    `since` is the first batch that the sink can have in its ledger. It is empty for a sink without a ledger, and
    missing if an older version wrote the record.
    """
    output_mode: str
    pinned: dict[str, str]
    """Settings that Spark keeps in the checkpoint, whatever a later session sets."""
    unpinned: dict[str, str]
    """Settings that change results and that Spark does not keep."""
    versions: dict[str, str]
    code: dict[str, str] = field(default_factory=dict)
    """Hashes of the spec, its SQL files and its Python files."""
    plan: RecordedPlan | None = None
    """The query's plan in comparable parts. None if an older version wrote the record."""
    views: dict[str, str] = field(default_factory=dict)
    """The views behind the query by name: SQL without comments and white space, or a hash of a Python function.

    A function's hash follows its code and the project's functions that it calls, not formatting or comments.
    """
    expectations: dict[str, Any] | None = None
    """The expectations of the views by the view's name. None if an older version wrote the record."""
    inputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The sources behind the query by name, static ones included, as the spec declares them, without secrets."""
    trigger: str = ""
    params: dict[str, str] = field(default_factory=dict)
    """The parameters of the SQL."""
    started_after: int | None = None
    """The newest committed batch when this record was first written, -1 before the first batch. After a rewind to an
    earlier batch, it is that one.

    None if an older version wrote the record. A start that Spark refused commits nothing: see `read_last_committed`.
    """

    def log(self, index: int) -> int:
        """Return the number of a source's folder in `sources/`, by its place in the plan.

        A view that is united with itself has its source at two places. Spark reads it once, with one folder.
        """
        source = self.sources[index] if index < len(self.sources) else {}
        return int(source.get("folder", index))

    def to_json(self) -> str:
        """Return the record as indented JSON, with each operator's fingerprint."""
        data = asdict(self)
        for entry, operator in zip(data["operators"], self.operators, strict=True):
            entry["fingerprint"] = operator.fingerprint
        data["plan"] = None if self.plan is None else self.plan.to_json()
        return json.dumps(data, indent=1, sort_keys=True)

    def sink(self, key: str) -> dict[str, str] | None:
        """Return the entry of a sink by its key, with or without the query's id in front."""
        return next(
            (entry for entry in self.sinks if key in (entry["key"], entry["key"].partition("/")[2])), None
        )

    @classmethod
    def from_json(cls, text: str) -> QueryMetadata:
        """Read what `to_json` wrote."""
        data: dict[str, Any] = json.loads(text)
        operators = tuple(
            RecordedOperator(kind=entry["kind"], text=entry["text"], shape=entry["shape"])
            for entry in data.pop("operators")
        )
        plan = data.pop("plan", None)
        # A newer version may have written fields that this one does not know.
        known = {item.name for item in fields(cls)}
        return cls(
            operators=operators,
            sources=tuple(data.pop("sources")),
            sinks=tuple(data.pop("sinks")),
            plan=None if plan is None else RecordedPlan.from_json(plan),
            **{name: value for name, value in data.items() if name in known},
        )


def read(checkpoint: CheckpointPath) -> QueryMetadata | None:
    """Return the record of a checkpoint, or None if it has none."""
    file = checkpoint / "_millstream" / "record.json"
    return read_file(file) if file.exists() else None


def read_last_committed(checkpoint: CheckpointPath, committed: int | None) -> QueryMetadata | None:
    """Return the record of the last start that committed a batch, or None if there is none.

    `committed` is the newest committed batch. A start that Spark refused, or that ended before its first commit,
    leaves its record as the newest one, although the state was written by the start before it.
    """
    folder = checkpoint / "_millstream"
    names = [file.name for file in folder.glob("record-*.json")]
    former = sorted(names, key=lambda name: int(name.removesuffix(".json").partition("-")[2]), reverse=True)
    for file in (folder / "record.json", *(folder / name for name in former)):
        if not file.exists():
            continue
        record = read_file(file)
        if record.started_after is None or (committed is not None and committed > record.started_after):
            return record
    return None


def read_file(file: CheckpointPath) -> QueryMetadata:
    """Return the record in a file. Raises `CheckpointError` if it is corrupt."""
    try:
        return QueryMetadata.from_json(file.read_text())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{file} cannot be read: {error}", "delete the file; it is written again"
        ) from error


def write(checkpoint: CheckpointPath, record: QueryMetadata) -> None:
    """Write the record. A former record that differs is kept next to it as `record-<n>.json`, oldest first.

    A record that differs only in `started_after` is written only if that is smaller, as after a rewind. It then
    replaces the former one.
    """
    folder = checkpoint / "_millstream"
    folder.mkdir(parents=True, exist_ok=True)
    file, text = folder / "record.json", record.to_json()
    if file.exists():
        former = file.read_text()
        if former == text:
            return
        equal_start = _find_equal_start(former, record)
        if equal_start is None:
            number = len(list(folder.glob("record-*.json"))) + 1
            write_durably(folder / f"record-{number}.json", former)
        elif record.started_after is None or record.started_after >= equal_start:
            return
    write_durably(file, text)


def _find_equal_start(former: str, record: QueryMetadata) -> int | None:
    """Return `started_after` of a record's text that differs from another record at most in that; otherwise None."""
    try:
        recorded = QueryMetadata.from_json(former)
    except (ValueError, KeyError, TypeError):
        return None
    is_equal = (
        replace(recorded, started_after=None).to_json() == replace(record, started_after=None).to_json()
    )
    return recorded.started_after if is_equal else None
