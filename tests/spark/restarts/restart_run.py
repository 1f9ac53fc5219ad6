"""Restarts of a changed query on a checkpoint of the query before the change, and what a fresh run writes instead."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections import Counter
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.errors import PySparkException

from millstream.checkpoint import metadata
from millstream.checkpoint.folder import Checkpoint
from millstream.engine.recovery.checkpoint_record import build_record
from millstream.engine.recovery.restart_check import restrict_pinned
from millstream.engine.recovery.source_offsets import list_origins
from millstream.engine.timeout_run import ensure_query_ends
from millstream.frames.build_views import build_frames
from millstream.pipeline.model import Pipeline
from millstream.plan.query_plan import QueryPlan, plan_query
from millstream.spec.trigger import Trigger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

Spec = dict[str, Any]
DELETE = object()
_LONG_AGO = 1_767_225_600


@dataclass(frozen=True)
class Edit:
    """One change of a base pipeline: new values by their dotted paths, and what must come of it."""

    name: str
    base: str
    change: Mapping[str, Any] = field(hash=False)
    verdict: str = ""
    outcome: str = ""
    note: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.base}: {self.name}"

    def apply(self, spec: Spec) -> Spec:
        """The base with the change; text in an existing text is replaced by `old=>new`."""
        changed = deepcopy(spec)
        for path, value in self.change.items():
            *parents, last = path.split("/")
            place = changed
            for key in parents:
                place = place.setdefault(key, {})
            if value is DELETE:
                del place[last]
            elif isinstance(value, str) and "=>" in value:
                old, _, new = value.partition("=>")
                assert old in place[last], f"{old!r} is not in {place[last]!r}"
                place[last] = place[last].replace(old, new)
            else:
                place[last] = value
        return changed


@dataclass(frozen=True)
class Outcome:
    """What a restart did."""

    plan: QueryPlan
    what: str
    """`right`, `wrong`, or `refused` with Spark's error."""
    detail: str


class LogInput(Protocol):
    """Input that is only ever added to: tables and topics. `names` are placeholders of the spec and their values."""

    names: Mapping[str, str]

    def add(self, source: str, parts: list[list[dict[str, Any]]]) -> None:
        """Append rows, in several parts."""


def _refused(plan: QueryPlan, error: PySparkException) -> Outcome:
    return Outcome(plan, "refused", f"{type(error).__name__}: {str(error)[:300]}")


def _compare(
    plan: QueryPlan, base: Counter[str], rows: Counter[str], first: Counter[str], wanted: Counter[str]
) -> Outcome:
    """Compare the rows of a restart with those of the changed query that has run from the beginning."""
    # With another watermark a window may close in another half; then all rows together are compared.
    if rows == wanted or base + rows == first + wanted:
        return Outcome(plan, "right", "")
    missing, extra = wanted - rows, rows - wanted
    return Outcome(plan, "wrong", f"missing {dict(missing)}; extra {dict(extra)}"[:400])


class Restarts:
    """Runs the first half of the input by a base pipeline, and the second half by a changed one.

    Input of files is shared: the second half is there only during a restart. A source that cannot forget its input
    is one of `logs`, by base: each restart gets its own.
    """

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        files: Mapping[str, tuple[list[Any], list[Any]]],
        logs: Mapping[str, Callable[[Path], LogInput]] | None = None,
    ) -> None:
        self.spark = spark
        self.folder = folder
        self._logs = dict(logs or {})
        self._halves = files
        self._files: dict[str, tuple[list[Path], list[Path]]] = {}
        self._bases: dict[str, tuple[Path, Counter[str]]] = {}
        self._count = 0
        self.outcomes: dict[Edit, Outcome] = {}
        for source, halves in files.items():
            (folder / source).mkdir(parents=True)
            self._files[source] = tuple(  # type: ignore[assignment]
                [self._store(source, f"{half}{number}", rows) for number, rows in enumerate(parts)]
                for half, parts in zip("ab", halves, strict=True)
            )
            for file in self._files[source][0]:
                os.link(file, folder / source / file.name)

    def _store(self, source: str, name: str, rows: list[Any]) -> Path:
        file = self.folder / "stored" / source / f"{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(file, (_LONG_AGO + ord(name[0]) * 100 + int(name[1:]),) * 2)
        return file

    def restart(self, edit: Edit, base: Spec, *, skips_refused: bool = False) -> Outcome:
        """Restart a changed query, compare its rows with those of the same query that has always been like this.

        What `plan` does not let continue may be left out: its outcome is `not run`.
        """
        self.outcomes[edit] = outcome = self._restart(edit, base, skips_refused=skips_refused)
        return outcome

    def _restart(self, edit: Edit, base: Spec, *, skips_refused: bool) -> Outcome:
        if edit.base in self._logs:
            return self._restart_log(edit, base)
        before, now = self._pipeline(base), self._pipeline(edit.apply(base))
        if edit.base not in self._bases:
            checkpoint = self._new_folder()
            self._bases[edit.base] = (checkpoint, self._run(before, checkpoint))
        restarted, fresh = self._new_folder(), self._new_folder()
        shutil.copytree(self._bases[edit.base][0], restarted)
        plan = self._plan(now, restarted)
        if skips_refused and not plan.verdict.can_continue:
            return Outcome(plan, "not run", "")
        with self._second_half():
            try:
                rows = self._run(now, restarted)
            except PySparkException as error:
                return _refused(plan, error)
        first = self._run(now, fresh)
        with self._second_half():
            wanted = self._run(now, fresh)
        return _compare(plan, self._bases[edit.base][1], rows, first, wanted)

    def _restart_log(self, edit: Edit, base: Spec) -> Outcome:
        """Restart a query that reads a table or topics, with input of its own."""
        log = self._logs[edit.base](self._new_folder())
        for source, (rows, _) in self._halves.items():
            log.add(source, rows)
        before, now = self._pipeline(base, log.names), self._pipeline(edit.apply(base), log.names)
        restarted, fresh = self._new_folder(), self._new_folder()
        base_rows, first = self._run(before, restarted), self._run(now, fresh)
        for source, (_, rows) in self._halves.items():
            log.add(source, rows)
        plan = self._plan(now, restarted)
        try:
            found = self._run(now, restarted)
        except PySparkException as error:
            return _refused(plan, error)
        return _compare(plan, base_rows, found, first, self._run(now, fresh))

    def _plan(self, now: Pipeline, restarted: Path) -> QueryPlan:
        committed = Checkpoint(restarted).committed()
        recorded = metadata.read_last_committed(restarted, committed)
        assert recorded is not None
        with self._settings(now):
            frame = build_frames(self.spark, now)[now.reads("out")]
            record = self._record(now, frame, restarted)
            return plan_query("out", str(restarted), recorded, restrict_pinned(now, record))

    def _run(self, pipeline: Pipeline, checkpoint: Path) -> Counter[str]:
        rows: Counter[str] = Counter()

        def collect(frame: Any, _: int) -> None:
            rows.update(
                json.dumps(row.asDict(recursive=True), default=str, sort_keys=True) for row in frame.collect()
            )

        with self._settings(pipeline):
            frame = build_frames(self.spark, pipeline)[pipeline.reads("out")]
            metadata.write(checkpoint, self._record(pipeline, frame, checkpoint))
            mode = pipeline.queries["out"].output_mode.value
            stream = frame.writeStream.outputMode(mode).foreachBatch(collect)
            stream = stream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
            with ensure_query_ends(self.spark, pipeline, "out", Trigger(available_now=True)):
                query = stream.start()
            try:
                query.awaitTermination()
            finally:
                query.stop()
        return rows

    def _record(self, pipeline: Pipeline, frame: Any, checkpoint: Path) -> metadata.QueryMetadata:
        committed = Checkpoint(checkpoint).committed()
        return build_record(self.spark, pipeline, "out", "id", frame, list_origins(frame), {}, {}, committed)

    def _pipeline(self, spec: Spec, names: Mapping[str, str] | None = None) -> Pipeline:
        text = json.dumps(spec)
        for name, value in {"$IN": str(self.folder), **(names or {})}.items():
            text = text.replace(name, value)
        spec = json.loads(text)
        code = spec.pop("code", {})
        folder = self.folder
        if code:
            folder /= f"code-{hashlib.sha256(repr(code).encode()).hexdigest()[:8]}"
            folder.mkdir(exist_ok=True)
        for module, content in code.items():
            file = folder / f"{module}.py"
            if not file.exists():
                file.write_text(content)
        return Pipeline.model_validate({**spec, "folder": folder}, context={"folder": folder})

    def _new_folder(self) -> Path:
        self._count += 1
        return self.folder / "checkpoints" / str(self._count)

    @contextmanager
    def _settings(self, pipeline: Pipeline) -> Iterator[None]:
        before = {key: self.spark.conf.get(key, None) for key in pipeline.spark}
        for key, value in pipeline.spark.items():
            self.spark.conf.set(key, str(value))
        try:
            yield
        finally:
            for key, value in before.items():
                if value is None:
                    self.spark.conf.unset(key)
                else:
                    self.spark.conf.set(key, value)

    @contextmanager
    def _second_half(self) -> Iterator[None]:
        added = []
        for source, (_, files) in self._files.items():
            for file in files:
                os.link(file, self.folder / source / file.name)
                added.append(self.folder / source / file.name)
        try:
            yield
        finally:
            for file in added:
                file.unlink()
