"""Restarts of a changed query on a checkpoint of the query before the change, and what a fresh run writes instead."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from millstream.checkpoint import metadata
from millstream.checkpoint.folder import Checkpoint
from millstream.engine.recovery.checkpoint_record import build_record
from millstream.engine.recovery.restart_check import restrict_pinned
from millstream.engine.recovery.source_offsets import list_origins
from millstream.frames.build_views import build_frames
from millstream.pipeline.model import Pipeline
from millstream.plan.query_plan import QueryPlan, plan_query

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
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


class Restarts:
    """Runs the first half of the input by a base pipeline, and the second half by a changed one."""

    def __init__(
        self, spark: SparkSession, folder: Path, files: Mapping[str, tuple[list[Any], list[Any]]]
    ) -> None:
        self.spark = spark
        self.folder = folder
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

    def restart(self, edit: Edit, base: Spec) -> Outcome:
        """Restart a changed query, compare its rows with those of the same query that has always been like this."""
        self.outcomes[edit] = outcome = self._restart(edit, base)
        return outcome

    def _restart(self, edit: Edit, base: Spec) -> Outcome:
        before, now = self._pipeline(base), self._pipeline(edit.apply(base))
        if edit.base not in self._bases:
            checkpoint = self._new_folder()
            self._bases[edit.base] = (checkpoint, self._run(before, checkpoint))
        restarted, fresh = self._new_folder(), self._new_folder()
        shutil.copytree(self._bases[edit.base][0], restarted)
        committed = Checkpoint(restarted).committed()
        recorded = metadata.read_last_committed(restarted, committed)
        assert recorded is not None
        with self._settings(now):
            frame = build_frames(self.spark, now)[now.reads("out")]
            record = self._record(now, frame, restarted)
            plan = plan_query("out", str(restarted), recorded, restrict_pinned(now, record))
        with self._second_half():
            try:
                rows = self._run(now, restarted)
            except PySparkException as error:
                return Outcome(plan, "refused", f"{type(error).__name__}: {str(error)[:300]}")
        first = self._run(now, fresh)
        with self._second_half():
            wanted = self._run(now, fresh)
        # With another watermark a window may close in another half; then all rows together are compared.
        if rows == wanted or self._bases[edit.base][1] + rows == first + wanted:
            return Outcome(plan, "right", "")
        missing, extra = wanted - rows, rows - wanted
        return Outcome(plan, "wrong", f"missing {dict(missing)}; extra {dict(extra)}"[:400])

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
            query = stream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
            try:
                query.awaitTermination()
            finally:
                query.stop()
        return rows

    def _record(self, pipeline: Pipeline, frame: Any, checkpoint: Path) -> metadata.QueryMetadata:
        committed = Checkpoint(checkpoint).committed()
        return build_record(self.spark, pipeline, "out", "id", frame, list_origins(frame), {}, {}, committed)

    def _pipeline(self, spec: Spec) -> Pipeline:
        spec = json.loads(json.dumps(spec).replace("$IN", str(self.folder)))
        return Pipeline.model_validate({**spec, "folder": self.folder}, context={"folder": self.folder})

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
