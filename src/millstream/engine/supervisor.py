"""Watch the queries of a run: restart them after an outage, and end the run when one gives up."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from millstream.diagnostics.failure import RESTART, CheckpointError, InvalidInput, MillstreamError
from millstream.engine.failure_classifier import COMMITTED_ELSEWHERE, FailureKind, QueryFailure, classify
from millstream.engine.failure_place import locate_failure
from millstream.process.signal_safe_event import SignalSafeEvent
from millstream.spark.session import explain_lost_jvm

if TYPE_CHECKING:
    from millstream.engine.events.event_bus import EventBus
    from millstream.engine.failure_place import LocateSql
    from millstream.engine.open_files_watch import OpenFilesWatch
    from millstream.engine.recovery.uncommitted_batch import UncommittedBatch
    from millstream.engine.streaming_query import RunningQuery
    from millstream.spec.backoff import Backoff

# How often, in seconds, the queries are checked. A dead one is noticed within this time; a check takes about 1 ms.
LOOK = 0.2
# A source is reported as silent after this many seconds. Spark's clients retry by themselves for a minute or two.
SILENCE = 5.0
# A batch in which a process died this many times in a row is taken as the cause; once or twice may be an accident.
DEATHS = 3
POISONED = (
    "correct the code that reads these records, then start again: the batch will contain the same records"
)
INTERRUPTED = "asked to end at once; its batch is interrupted and runs again at the next start"
TIME_OVER = " (the time of the run is over; the next run continues here)"


class QueryPhase(StrEnum):
    """The phase of a query, as its supervisor knows it."""

    WAITING = "waiting"
    RUNNING = "running"
    RETRYING = "retrying"
    ENDED = "ended"
    FAILED = "failed"


@dataclass
class SupervisedQuery:
    """A query and its history of failures. Times are seconds of the monotonic clock."""

    query: RunningQuery
    state: QueryPhase = QueryPhase.WAITING
    failures: int = 0
    failing_since: float | None = None
    start_at: float = 0.0
    failure: QueryFailure | None = None
    failed_at: list[float] = field(default_factory=list)
    batch: int | None = None
    deaths: int = 0
    """The number of times in a row that a process died in `batch`."""
    silent_since: float | None = None
    is_silence_reported: bool = False
    is_restart_requested: bool = False


@dataclass
class Supervisor:
    """Runs queries until they end, are asked to end, or one gives up."""

    queries: list[RunningQuery]
    backoff: Backoff
    events: EventBus
    chance: random.Random = field(default_factory=random.Random)
    alone_until: float = 0.0
    """The first query runs alone until this monotonic time, or until it has delivered its first batch."""
    locate_sql: LocateSql | None = None
    """Returns the file and line of characters of a view's SQL, for errors of a batch."""
    open_files: OpenFilesWatch | None = None

    def __post_init__(self) -> None:
        self.watched = [SupervisedQuery(query) for query in self.queries]
        self._end_requested = SignalSafeEvent()
        self._interrupt_requested = SignalSafeEvent()
        self._is_out_of_files = False
        self._is_time_over = False
        self._is_ending = False

    def end(self) -> None:
        """Ask for a graceful end, also from a signal handler: batches finish. A second call interrupts them."""
        if self._end_requested.is_set():
            self._interrupt_requested.set()
        self._end_requested.set()

    def restart(self, name: str) -> None:
        """Ask for a restart of a query: its current batch finishes and commits, and it starts from its checkpoint.

        A query that waits for its next attempt starts at once. Raises `InvalidInput` if there is no such query, or it
        has ended. Called from other threads.
        """
        watched = next((entry for entry in self.watched if entry.query.name == name), None)
        if watched is None:
            raise InvalidInput(
                f"there is no query '{name[:80]}'",
                f"the queries are {', '.join(entry.query.name for entry in self.watched)}",
            )
        if watched.state is QueryPhase.ENDED or self._end_requested.is_set() or self._is_over():
            raise InvalidInput(f"query '{name}' has ended", "start it again with 'millstream run'")
        watched.is_restart_requested = True

    def run(self, seconds: float | None = None) -> bool:
        """Run for `seconds`, or until all queries end by themselves. Returns whether the exit code is 0.

        The time begins when the first batch is committed, or when no query has a first batch in progress.
        """
        deadline = None
        try:
            while not self._end_requested.is_set() and not self._is_over():
                for watched in self.watched:
                    self._look_at(watched)
                if seconds is not None and deadline is None and self._has_begun():
                    deadline = time.monotonic() + seconds
                if deadline is not None and time.monotonic() >= deadline:
                    self._is_time_over = True
                    break
                self._is_out_of_files = self.open_files is not None and self.open_files.must_end()
                self._end_requested.wait(LOOK)
            self._finish()
        finally:
            for watched in self.watched:
                watched.query.stop()
                watched.query.close()
        return self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """1 if a query gave up, or 3 if its checkpoint cannot continue; 75 if the run must start again; else 0."""
        causes = [
            watched.failure.cause
            for watched in self.watched
            if watched.state is QueryPhase.FAILED and watched.failure
        ]
        must_restart = self._is_out_of_files and not self._end_requested.is_set()
        return max((cause.exit_code for cause in causes), default=RESTART if must_restart else 0)

    def _is_over(self) -> bool:
        """Return whether all queries have ended, one has given up, so that it is noticed, or few files are left."""
        states = {watched.state for watched in self.watched}
        return self._is_out_of_files or QueryPhase.FAILED in states or states <= {QueryPhase.ENDED}

    def _has_begun(self) -> bool:
        """Return whether a batch is committed, or none is in progress: no rows, a silent source, a failure."""
        return any(watched.query.has_delivered for watched in self.watched) or all(
            watched.state is not QueryPhase.WAITING
            and (
                watched.state is not QueryPhase.RUNNING
                or watched.is_silence_reported
                or watched.query.is_idle
            )
            for watched in self.watched
        )

    def _look_at(self, watched: SupervisedQuery) -> None:
        match watched.state:
            case QueryPhase.WAITING | QueryPhase.RETRYING:
                if watched.is_restart_requested:
                    watched.is_restart_requested, watched.start_at = False, 0.0
                if time.monotonic() >= watched.start_at and not self._must_wait(watched):
                    self._start_query(watched)
            case QueryPhase.RUNNING:
                self._check_running(watched)
            case QueryPhase.ENDED | QueryPhase.FAILED:
                pass

    def _must_wait(self, watched: SupervisedQuery) -> bool:
        """Return whether a query must wait for the first query's first batch. An idle first query holds up none."""
        first = self.watched[0]
        if (
            watched is first
            or watched.state is not QueryPhase.WAITING
            or time.monotonic() >= self.alone_until
        ):
            return False
        return first.state is QueryPhase.RUNNING and not first.query.has_delivered and not first.query.is_idle

    def _start_query(self, watched: SupervisedQuery) -> None:
        try:
            watched.query.start()
        except (MillstreamError, PySparkException, Py4JJavaError, OSError) as error:
            # Without its JVM no query can start again, and Py4J's error is one of the connection, as of a server.
            if (lost := explain_lost_jvm(error)) is not None:
                raise lost from error
            # A remote file system that is away is an exception of Java's, which PySpark does not translate.
            self._handle_failure(watched, classify(None, error))
        else:
            watched.state = QueryPhase.RUNNING
            # A start is no answer of the source that an earlier one waited for.
            watched.silent_since, watched.is_silence_reported = None, False

    def _check_running(self, watched: SupervisedQuery) -> None:
        """Handle the end of a query, if it has ended.

        A delivered batch resets its count of failures, and so does a source that responded and had no rows.
        """
        query = watched.query
        if watched.failures and (query.has_delivered or query.is_idle):
            watched.failures, watched.failing_since = 0, None
        # After its last batch a query is not active any more, and still commits the batch.
        if query.is_active or query.handle is None or not query.has_ended():
            try:
                query.look()
            except CheckpointError as loss:
                query.stop()
                self._handle_failure(watched, classify(None, loss))
                return
            if query.has_passed_gaps() or watched.is_restart_requested:
                query.ask_to_end()
            self._report_silence(watched)
            return
        error = query.handle.exception()
        raised = query.delivery.failure if query.delivery else None
        query.close()
        query.settle()
        if error is None and query.following is not None:
            # The gaps are skipped, so the next start stops at a gap again.
            watched.query, watched.state = query.following, QueryPhase.WAITING
        elif error is None and watched.is_restart_requested:
            watched.state, watched.is_restart_requested = QueryPhase.WAITING, False
        elif error is None:
            watched.state = QueryPhase.ENDED
            self.events.emit("query_stopped", query.name, reason="nothing more to read")
        else:
            failure = classify(error, raised)
            if failure.message == COMMITTED_ELSEWHERE and query.has_lease():
                # A driver that was suspended has ended the batch with which it lost its lease. It will do no other.
                # Or a client has repeated a request to S3 whose response was lost, and found its own file.
                failure = QueryFailure(
                    FailureKind.CRASH, "a file of this batch was already in the checkpoint"
                )
            failure = self._name_missing_records(query, failure)
            self._handle_failure(watched, self._add_place(query, failure, f"{raised}\n{error}"))

    def _add_place(self, query: RunningQuery, failure: QueryFailure, text: str) -> QueryFailure:
        """Add the place in the spec or in the user's code that made a batch fail, if Spark names one."""
        if failure.cause is not FailureKind.DEFECT:
            return failure
        place = locate_failure(text, query.pipeline, query.name, self.locate_sql)
        return replace(failure, message=f"{failure.message} ({place})") if place else failure

    def _name_missing_records(self, query: RunningQuery, failure: QueryFailure) -> QueryFailure:
        """Replace a failure for missing records with one that names them, as far as the source knows them."""
        if failure.cause is not FailureKind.GONE:
            return failure
        try:
            error = query.explain_data_loss()
        except (MillstreamError, OSError):
            return failure
        return failure if error is None else QueryFailure(FailureKind.GONE, error.what, error.fix)

    def _report_silence(self, watched: SupervisedQuery) -> None:
        """Report a source that has not responded for a while, and later that it responds again."""
        source = watched.query.awaited_source()
        if source is None:
            if watched.is_silence_reported:
                self.events.emit("going_on", watched.query.name)
            watched.silent_since, watched.is_silence_reported = None, False
            return
        since = watched.silent_since = watched.silent_since or time.monotonic()
        if not watched.is_silence_reported and time.monotonic() - since > SILENCE:
            watched.is_silence_reported = True
            self.events.emit("waiting", watched.query.name, source=source, seconds=SILENCE)

    def _handle_failure(self, watched: SupervisedQuery, failure: QueryFailure) -> None:
        """Schedule a restart, or give up."""
        watched.failure = failure
        watched.failures += 1
        name = watched.query.name
        batch = watched.query.unfinished() if watched.query.handle is not None else None
        suffix = self._give_up_suffix(watched, failure, batch)
        if suffix is None and self._is_ending:
            self._end_unfinished(watched, batch)
            return
        if suffix is None:
            wait = self.backoff.wait(watched.failures, self.chance)
            watched.state, watched.start_at = QueryPhase.RETRYING, time.monotonic() + wait
            self.events.emit(
                "retry", name, reason=failure.message, wait_seconds=round(wait, 1), failures=watched.failures
            )
            return
        self._give_up(watched, failure, batch, suffix)

    def _give_up(
        self, watched: SupervisedQuery, failure: QueryFailure, batch: UncommittedBatch | None, suffix: str
    ) -> None:
        """Give up with an event that names the batch and its input."""
        name = watched.query.name
        watched.state = QueryPhase.FAILED
        is_to_blame = failure.cause in (FailureKind.DEFECT, FailureKind.CRASH) and suffix != TIME_OVER
        poisoned = is_to_blame and batch is not None
        poison_record = (
            watched.query.poison(batch.batch)
            if failure.cause is FailureKind.DEFECT and batch is not None
            else None
        )
        self.events.emit(
            "query_failed",
            name,
            cause=failure.cause.value,
            reason=f"{failure.message}{suffix}",
            fix=failure.fix or (POISONED if poisoned else ""),
            batch=batch.batch if batch else None,
            reads=list(batch.reads) if batch else [],
            record=list(poison_record.reads)
            if poison_record and batch and poison_record.reads != batch.reads
            else [],
            value=poison_record.value if poison_record else None,
        )

    def _end_unfinished(self, watched: SupervisedQuery, batch: UncommittedBatch | None) -> None:
        """End a query that would start again after its failure, if the run had not come to its end.

        It gives up if the run's time is over, because exit code 0 would say that all is well.
        A request to end, or another query's failure, only stops it.
        """
        failure, name = watched.failure, watched.query.name
        assert failure is not None, "it would start again after a failure"
        if not self._is_time_over:
            rest = f"batch {batch.batch} is not committed and runs again" if batch else "it continues"
            watched.state = QueryPhase.ENDED
            self.events.emit(
                "query_stopped", name, reason=f"{rest} at the next start, because of: {failure.message}"
            )
            return
        self._give_up(watched, failure, batch, TIME_OVER)

    def _give_up_suffix(
        self, watched: SupervisedQuery, failure: QueryFailure, batch: UncommittedBatch | None
    ) -> str | None:
        """Return None if the query may start again, else the text to append to the reason, which may be empty."""
        now = time.monotonic()
        first_failure = watched.failing_since = watched.failing_since or now
        recent_failures = [
            failed_batch
            for failed_batch in watched.failed_at
            if now - failed_batch < self.backoff.within.seconds
        ]
        watched.failed_at = [*recent_failures, now]
        failed_batch = batch.batch if batch else None
        is_crash = failure.cause is FailureKind.CRASH
        watched.deaths = watched.deaths + 1 if is_crash and failed_batch == watched.batch else int(is_crash)
        watched.batch = failed_batch
        if failure.cause not in (FailureKind.OUTAGE, FailureKind.CRASH):
            return ""
        if watched.deaths >= DEATHS:
            return f" ({DEATHS} times in a row)"
        if now - first_failure >= self.backoff.give_up_after.seconds:
            return f" (for {self.backoff.give_up_after})"
        if len(watched.failed_at) > self.backoff.restarts:
            return f" (failed {len(watched.failed_at)} times in {self.backoff.within})"
        return None

    def _finish(self) -> None:
        """Let running queries finish their batch; a second request interrupts them.

        A query that waits for its next attempt ends without it.
        """
        self._is_ending = True
        for watched in self.watched:
            if watched.state is QueryPhase.RUNNING and watched.query.has_ended():
                # It has failed, or ended, since the last look.
                self._check_running(watched)
            elif watched.state is QueryPhase.RETRYING:
                self._end_unfinished(watched, watched.query.unfinished())
        running = [
            watched
            for watched in self.watched
            if watched.state is QueryPhase.RUNNING and watched.query.is_active
        ]
        if running:
            self.events.emit("stopping", queries=[watched.query.name for watched in running])
        while (
            any(not watched.query.has_ended() for watched in running)
            and not self._interrupt_requested.is_set()
        ):
            for watched in running:
                watched.query.ask_to_end()
            self._interrupt_requested.wait(LOOK / 2)
        for watched in running:
            watched.query.settle()
            error = watched.query.handle.exception() if watched.query.handle else None
            if error is not None and not self._interrupt_requested.is_set():
                raised = watched.query.delivery.failure if watched.query.delivery else None
                self._handle_failure(watched, classify(error, raised))
            else:
                watched.state = QueryPhase.ENDED
                reason = "asked to end" if watched.query.has_ended() else INTERRUPTED
                self.events.emit("query_stopped", watched.query.name, reason=reason)
