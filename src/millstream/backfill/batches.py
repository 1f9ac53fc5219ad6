"""Write single batches of a query again to a sink that lacks them, each with its own number."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.backfill.failure import explain_failure
from millstream.backfill.inputs import reduce_to_query, require_rereadable
from millstream.checkpoint import metadata
from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.lock import CheckpointLock
from millstream.connectors.api.batch_ledger import BACKFILL
from millstream.connectors.api.values.offsets import OffsetRange
from millstream.diagnostics.failure import CheckpointError, InvalidInput, MillstreamError
from millstream.engine.batch.batch_run import compute_batch_results
from millstream.engine.delivery.batch_metadata import BatchNotes
from millstream.engine.delivery.batch_spool import BatchSpool
from millstream.engine.delivery.frame_cache import persisted
from millstream.engine.delivery.sink_writers import create_writer as make_writer
from millstream.engine.recovery.missing_batches import explain_inexact, find_missing, format_batches
from millstream.engine.sink_keys import sink_keys
from millstream.frames.build_views import read_source
from millstream.pipeline.model import OnError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.api.sink import Sink
    from millstream.connectors.api.writer import Writer
    from millstream.pipeline.model import Pipeline, SinkEntry, SourceEntry


@dataclass(frozen=True)
class BatchOutcome:
    """One batch of one sink. `rows` is None if they were not counted."""

    sink: str
    batch: int
    rows: int | None


@dataclass
class BatchReport:
    """The batches that were written, or that a dry run would write, and notes."""

    pipeline: str
    query: str
    is_dry_run: bool
    outcomes: list[BatchOutcome] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the whole report as JSON data."""
        return {
            "pipeline": self.pipeline,
            "query": self.query,
            "written": not self.is_dry_run,
            "batches": [
                {"sink": outcome.sink, "batch": outcome.batch, "rows": outcome.rows}
                for outcome in self.outcomes
            ],
            "notes": self.notes,
        }

    def table(self) -> tuple[list[str], list[list[object]]]:
        """Return the column names and rows of the table."""
        names = ["query", "sink", "batch", "rows"]
        return names, [[self.query, outcome.sink, outcome.batch, outcome.rows] for outcome in self.outcomes]


def parse_batches(text: str) -> tuple[int, ...]:
    """Parse batch ids such as `5-7,9` in order. Raises `InvalidInput`."""
    batches: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        ends = (first, last if dash else first)
        if not all(end.isascii() and end.isdigit() for end in ends) or int(ends[0]) > int(ends[1]):
            raise InvalidInput(f"'{text}' is not a list of batches", "write --batches 5, 5-7 or 5-7,9")
        batches |= set(range(int(ends[0]), int(ends[1]) + 1))
    return tuple(sorted(batches))


def backfill_batches(
    spark: SparkSession,
    pipeline: Pipeline,
    query: str,
    batches: Sequence[int],
    say: Callable[[str], None],
    *,
    sink: str | None = None,
    dry: bool = False,
) -> BatchReport:
    """Compute each of these batches from the offsets in the checkpoint and write it to the sinks that lack it.

    A batch is written by the query's own writer with its own number, in one commit, and is then in the sink's
    ledger; a run that was killed is completed by the next one. The checkpoint is locked. `sink` is a kind.
    Raises `InvalidInput` for batches that cannot be computed or written in order, before anything is written.
    """
    run = _BatchBackfill(spark, pipeline, query, batches, say, BatchReport(pipeline.name, query, dry), sink)
    folder = run.checkpoint.folder
    with nullcontext() if dry else CheckpointLock(folder, f"{pipeline.name}.{query} backfill"):
        run.check()
        try:
            run.run()
        except MillstreamError:
            raise
        except Exception as error:
            # Spark, a connector or a user's function may raise anything; the sentence says which query it was.
            fix = "fix the error and run the backfill again: batches that were written are kept"
            raise explain_failure(query, error, fix) from error
    return run.report


@dataclass
class _BatchBackfill:
    """The backfill of some batches of one query."""

    spark: SparkSession
    pipeline: Pipeline
    query: str
    batches: Sequence[int]
    say: Callable[[str], None]
    report: BatchReport
    sink: str | None

    def __post_init__(self) -> None:
        folder = self.pipeline.checkpoint_folder(self.query)
        if not folder.is_dir():
            raise InvalidInput(
                f"query '{self.query}' has no checkpoint, so it has no batches that could be written",
                "leave out --batches",
            )
        self.checkpoint = Checkpoint(folder)
        self.part = reduce_to_query(self.pipeline, self.query)

    def check(self) -> None:
        """Raise `InvalidInput` for batches that are not committed or cannot be computed."""
        require_rereadable(self.part)
        committed = self.checkpoint.committed()
        if committed is None or self.batches[-1] > committed:
            last = "none" if committed is None else f"batch {committed}"
            raise InvalidInput(
                f"query '{self.query}' has not committed batch {self.batches[-1]}; its last is {last}",
                "choose committed batches: the query writes later ones itself",
            )
        if reason := explain_inexact(self.pipeline, self.query, self.checkpoint, self.batches):
            raise InvalidInput(
                f"query '{self.query}': its batches cannot be written one by one, because {reason}",
                f"add the rows that the sink lacks: 'millstream backfill {self.query}'",
            )

    def run(self) -> None:
        """Write each batch to each sink that lacks it."""
        query_id = str(self.checkpoint.query_id())
        entries = self.pipeline.queries[self.query].to
        if self.sink is not None and self.sink not in [entry.sink.kind for entry in entries]:
            raise InvalidInput(
                f"query '{self.query}' has no sink '{self.sink}'", "pass the kind of one of its sinks"
            )
        writers: dict[str, tuple[Writer, tuple[int, ...]]] = {}
        try:
            for key, entry in zip(sink_keys(self.pipeline, self.query), entries, strict=True):
                if self.sink is None or entry.sink.kind == self.sink:
                    writer = self._writer(query_id, key, entry)
                    writers[key] = writer, ()
                    writers[key] = writer, self._missing_batches(entry.sink, writer)
            self._write(writers)
        finally:
            for writer, _ in writers.values():
                writer.close()

    def _writer(self, query_id: str, key: str, entry: SinkEntry) -> Writer:
        """Return the writer of a normal run, except that a refused batch ends the backfill and is not spooled."""
        if entry.on_error is OnError.DEAD_LETTER:
            entry = entry.model_copy(update={"on_error": OnError.FAIL})
        notes = BatchNotes(self.checkpoint, query_id)
        return make_writer(self.pipeline, self.query, query_id, key, entry, None, notes)

    def _missing_batches(self, target: Sink, writer: Writer) -> tuple[int, ...]:
        """Return the batches that a sink lacks.

        Raises `InvalidInput` if an earlier missing batch would be skipped.
        """
        sink = writer.identity.sink
        if not writer.has_ledger:
            self.report.notes.append(f"{sink} has no ledger of its batches and is left out")
            return ()
        entries = writer.last_committed_batches(self.spark)
        last_entry = writer.newest(self.spark)
        planned = BatchNotes(self.checkpoint, writer.identity.query_id).planned
        if last_entry is not None and last_entry.note.contradicts(planned(last_entry.batch)):
            raise CheckpointError(
                f"sink '{sink}' contains batch {last_entry.batch} with offsets that differ from those in the "
                f"checkpoint of query '{self.query}'",
                "restore the checkpoint that wrote to it",
            )
        spool = BatchSpool.of(self.pipeline, self.query, writer.identity.query_id, sink)
        spooled = [entry.batch for entry in spool.batches()]
        committed = self.checkpoint.committed()
        missing = find_missing(self.checkpoint, target, writer, last_entry, committed, spooled).batches
        selected = tuple(batch for batch in missing if batch in self.batches)
        earlier = [batch for batch in missing if selected and batch < selected[-1] and batch not in selected]
        if earlier:
            raise InvalidInput(
                f"sink '{sink}' also lacks the earlier batch {earlier[0]}, and it accepts batches only in order",
                f"include it: --batches {format_batches(sorted({*earlier, *selected}))}",
            )
        since = -1 if last_entry is None else last_entry.at
        has_backfill = any(entry.query_id.startswith(BACKFILL) and entry.at > since for entry in entries)
        if selected and has_backfill and not target.is_rerun_idempotent(writer.identity.mode):
            raise InvalidInput(
                f"a backfill has written to sink '{sink}' since the sink's last batch, so rows of the missing "
                f"batches may already be in the sink and would be written twice",
                f"list missing rows: 'millstream backfill {self.query} --compare'; then continue without these "
                f"batches: 'millstream run --adopt --select {self.query}'",
            )
        if not selected:
            self.report.notes.append(f"{sink} lacks none of these batches")
        return selected

    def _write(self, writers: dict[str, tuple[Writer, tuple[int, ...]]]) -> None:
        opened_keys: set[str] = set()
        for batch in sorted({batch for _, lacking in writers.values() for batch in lacking}):
            self.say(f"{self.query}: computing batch {batch}")
            frame = self._frame(batch)
            missing = {key: writer for key, (writer, lacking) in writers.items() if batch in lacking}
            is_cached = self.report.is_dry_run or sum(writer.passes for writer in missing.values()) > 1
            if is_cached:
                frame = persisted(frame)
            try:
                for key, writer in missing.items():
                    if self.report.is_dry_run:
                        self.report.outcomes.append(BatchOutcome(key, batch, frame.count()))
                        continue
                    if key not in opened_keys:
                        writer.open(self.spark, frame.schema)
                        opened_keys.add(key)
                    rows = writer.write(frame, batch).rows
                    self.report.outcomes.append(BatchOutcome(key, batch, rows))
            finally:
                if is_cached:
                    frame.unpersist()

    def _frame(self, batch: int) -> DataFrame:
        """Return the rows of one batch, read by its offsets in the checkpoint."""
        record, planned = metadata.read(self.checkpoint.folder), self.checkpoint.offsets(batch)
        previous = self.checkpoint.offsets(batch - 1) if batch else None
        assert record is not None, "checked before"
        assert planned is not None, "checked before"
        places: dict[str, int] = {}
        for index, source in enumerate(record.sources):
            places.setdefault(source.get("name", ""), index)

        def raw(name: str, entry: SourceEntry) -> DataFrame:
            if self.part.sources[name].static:
                return read_source(self.spark, name, entry)
            index = places.get(name)
            if index is None or index >= len(planned.sources):
                raise InvalidInput(
                    f"query '{self.query}' did not read source '{name}' when batch {batch} was planned",
                    f"add the rows that the sink lacks: 'millstream backfill {self.query}'",
                )
            end = planned.sources[index]
            start = previous.sources[index] if previous and index < len(previous.sources) else None
            files = () if end is None else self.checkpoint.files(record.log(index), start, end)
            start = start or (None if files else self.checkpoint.first(record.log(index)))
            rows = None
            if end is not None and start != end:
                rows = entry.source.read_range(self.spark, OffsetRange(start, end, files), entry.ddl)
            if rows is not None:
                return rows
            return entry.source.oldest().read(self.spark, static=True, schema=entry.ddl).limit(0)

        return compute_batch_results(self.spark, self.part, raw)[self.query]
