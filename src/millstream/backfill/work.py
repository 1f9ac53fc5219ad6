"""Hold each sink against the batch answer of its query, and write what it lacks, once."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from millstream.backfill import history, timeline
from millstream.backfill.report import Outcome, Report
from millstream.backfill.targets import targets
from millstream.backfill.writing import putting
from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.lock import CheckpointLock
from millstream.connectors.cut import Cut
from millstream.diagnostics.failure import CannotGoOn, MillstreamError, NotReady, WrongUse
from millstream.runtime.batch.answer import answers
from millstream.runtime.batch.differences import DIFFERENT, KEPT, MISSING, SURPLUS, differences
from millstream.runtime.failures import Cause, classify

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.backfill.targets import Target
    from millstream.backfill.wish import Wish
    from millstream.pipeline.model import Pipeline
    from millstream.runtime.batch.differences import Differences


def backfill(
    spark: SparkSession,
    pipeline: Pipeline,
    planned: Sequence[PlannedQuery],
    queries: Sequence[str],
    wish: Wish,
    say: Callable[[str], None],
) -> Report:
    """Compare, and unless the wish is otherwise write, these queries' sinks. `planned` are the queries' plans.

    Takes no lock and writes no checkpoint. Raises `WrongUse` where the range or a sink cannot be told or written,
    before anything is written.
    """
    plans = {one.name: one for one in planned}
    report = Report(pipeline.name)
    works = [_Work(spark, pipeline, plans[query], wish, report, say) for query in queries]
    for work in works:
        work.prepare()
    if not any(work.targets for work in works):
        raise WrongUse("no sink is left: " + "; ".join(report.notes), "choose other queries")
    for work in works:
        try:
            work.run()
        except MillstreamError:
            raise
        except Exception as error:
            # Whatever ends a batch of Spark or of the user's functions becomes a sentence, as in a run.
            failure = classify(None, error)
            said = f"the backfill of query '{work.query}' ended: {failure.message}"
            kind = NotReady if failure.cause is Cause.OUTAGE else MillstreamError
            raise kind(said, failure.fix or "correct it and run the backfill again") from error
    if not any(one.compared for one in report.outcomes):
        raise WrongUse("nothing can be compared: " + "; ".join(report.notes), "choose other queries")
    return report


class _Work:
    """One query."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: Pipeline,
        plan: PlannedQuery,
        wish: Wish,
        report: Report,
        say: Callable[[str], None],
    ) -> None:
        self.spark, self.pipeline, self.plan, self.wish = spark, pipeline, plan, wish
        self.report, self.say = report, say
        self.query = plan.name
        self.part = history.only(pipeline, self.query)
        self.targets: list[Target] = []

    def prepare(self) -> None:
        """Find out what is meant. Raises `WrongUse` for what cannot be done."""
        history.readable(self.part)
        self.cut = timeline.cut_of(self.pipeline, self.plan, self.wish)
        self.targets = list(targets(self.pipeline, self.query, self.wish, self.cut, self.report.notes))
        for target in self.targets:
            timeline.fleeting(self.plan, target.row_key)

    def run(self) -> None:
        """Compute the answer and go through the sinks."""
        if self.targets:
            with self._alone():
                self._compute()

    def _alone(self) -> AbstractContextManager[object]:
        """Nobody else writes where rows are taken away that the query may be writing at this moment.

        Rows that a query holds back are settled before a backfill looks at them, and rows that are added or
        replaced by key disturb nobody: then no lock is needed.
        """
        folder = self.pipeline.checkpoint(self.query).local
        own = self.wish.replace and self.wish.writes and any(not one.side for one in self.targets)
        if not own or timeline.holds_back(self.plan) or folder is None or not folder.is_dir():
            return nullcontext()
        checkpoint = Checkpoint(folder)
        if checkpoint.planned() != checkpoint.committed():
            raise CannotGoOn(
                f"query '{self.query}' has begun a batch and not committed it: rows of it would be taken away",
                "let the query finish it first: millstream run --until-caught-up",
            )
        return CheckpointLock(folder, f"{self.pipeline.name}.{self.query} backfill")

    def _compute(self) -> None:
        at = history.stand(self.pipeline, self.query)
        raw = history.reader(self.spark, self.part, at)
        if not self.wish.accept_gap:
            history.complete(self.part, self.query, self.cut, timeline.reach(self.plan), raw)
        cut = self._settled(at)
        if self.wish.dry:
            static = {
                name: entry.model_copy(update={"static": True}) for name, entry in self.part.sources.items()
            }
            self.report.read[self.query] = {name: raw(name, entry).count() for name, entry in static.items()}
        self.say(f"{self.query}: computing the batch answer")
        try:
            rows = answers(self.spark, self.part, raw)[self.query]
            answer = rows.where(cut.sql()).persist(KEPT)
        except AnalysisException as refused:
            said = str(refused).strip().split("\n")[0]
            raise MillstreamError(
                f"query '{self.query}' cannot be computed as a batch: {said}",
                "what Spark has for streams only has no batch answer; choose other queries",
            ) from refused
        try:
            for target in self.targets:
                made = target.sink.outcome(rows)
                self._sink(target, answer if made is None else made.where(cut.sql()), cut)
        finally:
            answer.unpersist()

    def _settled(self, at: history.Stand) -> Cut:
        """The cut without the rows that the query itself has yet to write."""
        until = timeline.settled(self.plan, at.watermark, self.wish)
        if until is None or (self.cut.end is not None and self.cut.end <= until):
            return self.cut
        cut = self.cut
        if not cut.path:
            cut = Cut(timeline.told(self.pipeline, self.plan, self.wish.column)[1])
        if cut.start is not None and cut.start >= until:
            raise WrongUse(
                f"query '{self.query}' has yet to write the rows of this range itself: it stands at "
                f"{until.isoformat(' ', 'seconds')}",
                "name an earlier range, or another table with --into",
            )
        self.report.notes.append(
            f"{self.query}: rows from {until.isoformat(' ', 'seconds')} on are left out; the query itself has yet "
            "to write them, or to write them again"
        )
        return cut.before(until)

    def _sink(self, target: Target, answer: DataFrame, cut: Cut) -> None:
        """Compare one sink, and write."""
        names = target.sink.takes(answer.columns)
        apart = [name for name in timeline.fleeting(self.plan, target.row_key) if name in names]
        if apart:
            self.report.notes.append(
                f"{self.query}: {', '.join(apart)} is not compared: it has other values at each run"
            )
        wanted = answer.select(*(f"`{name}`" for name in names))
        schema = StructType([wanted.schema[name] for name in names])
        outcome = Outcome(self.query, target.key, cut)
        self.report.outcomes.append(outcome)
        with ExitStack() as held:
            # Opened before the table is read: it finishes what a backfill that was killed has committed.
            put = None
            if self.wish.writes:
                instead = cut if self.wish.replace else None
                put = putting(self.spark, self.pipeline, target, schema, instead)
            self.say(f"{self.query}: comparing {target.sink.describe()}")
            rows = target.sink.held(self.spark, schema, target.mode, cut)
            if rows is None:
                outcome.compared = False
                self.report.notes.append(
                    f"{self.query}: the rows of {target.sink.describe()} cannot be compared"
                )
                return
            by_lower = {name.lower(): name for name in names}
            key = [by_lower.get(name.lower(), name) for name in target.row_key]
            found = differences(_fitting(rows, schema).where(cut.sql()), wanted, key, apart)
            held.callback(found.forget)
            self._tell(outcome, found)
            if put and (outcome.added or outcome.changed or outcome.deleted):
                self.say(f"{self.query}: writing {target.sink.describe()}")
                put(found.wanted if self.wish.replace else found.absent())

    def _tell(self, outcome: Outcome, found: Differences) -> None:
        """Put what was found into the outcome, and what is written of it."""
        outcome.wanted, outcome.held = found.wanted.count(), found.held.count()
        outcome.missing, outcome.surplus = found.counts[MISSING], found.counts[SURPLUS]
        outcome.different = found.counts[DIFFERENT]
        if self.wish.compare:
            outcome.differences = found.rows(self.wish.limit)
            return
        outcome.added, outcome.changed = outcome.missing, outcome.different
        outcome.deleted = outcome.surplus if self.wish.replace else 0


def _fitting(held: DataFrame, schema: StructType) -> DataFrame:
    """The rows with the names and types of `schema`, by position."""
    columns = [
        F.col(f"`{name.replace('`', '``')}`").cast(field.dataType).alias(field.name)
        for name, field in zip(held.columns, schema.fields, strict=True)
    ]
    return held.select(*columns)
