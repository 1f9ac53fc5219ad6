"""Watch the queries of a run: start them again after an outage, and never let one die unseen."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from millstream.diagnostics.failure import MillstreamError
from millstream.runtime.failures import Cause, Failure, classify

if TYPE_CHECKING:
    from millstream.runtime.events import Events
    from millstream.runtime.query import RunningQuery
    from millstream.runtime.unfinished import Unfinished
    from millstream.spec.backoff import Backoff

# How often the queries are looked at. A dead one is seen within this time; a look costs about a millisecond.
LOOK = 0.2
# So many seconds of silence from a source are told. Spark's clients ask again by themselves for a minute or two.
SILENCE = 5.0
# A batch in which a process has died so often is the cause: one death may be an accident, and so may two.
DEATHS = 3
POISONED = "mend what reads these records, then start again: the batch comes again with the same records"


class State(StrEnum):
    """Where a query is in its life, as far as its supervisor knows."""

    WAITING = "waiting"
    RUNNING = "running"
    RETRYING = "retrying"
    ENDED = "ended"
    FAILED = "failed"


@dataclass
class Watched:
    """A query and its history of failures. Times are seconds of the monotonic clock."""

    query: RunningQuery
    state: State = State.WAITING
    failures: int = 0
    failing_since: float | None = None
    start_at: float = 0.0
    failure: Failure | None = None
    failed_at: list[float] = field(default_factory=list)
    batch: int | None = None
    deaths: int = 0
    """How often in a row a process died in `batch`."""
    silent_since: float | None = None
    silence_told: bool = False


@dataclass
class Supervisor:
    """Runs queries until they end, are asked to end, or one gives up."""

    queries: list[RunningQuery]
    backoff: Backoff
    events: Events
    chance: random.Random = field(default_factory=random.Random)
    alone_until: float = 0.0
    """Until then, on the monotonic clock, the first query runs alone, or until it has delivered its first batch."""

    def __post_init__(self) -> None:
        self.watched = [Watched(query) for query in self.queries]
        self._end = threading.Event()
        self._now = threading.Event()

    def end(self) -> None:
        """Ask for a graceful end: current batches finish. Asked twice, batches are interrupted."""
        if self._end.is_set():
            self._now.set()
        self._end.set()

    def run(self, seconds: float | None = None) -> bool:
        """Run for that long, or until all queries end by themselves. True when none gave up."""
        deadline = None if seconds is None else time.monotonic() + seconds
        try:
            while not self._end.is_set() and not self._over():
                for watched in self.watched:
                    self._look(watched)
                if deadline is not None and time.monotonic() >= deadline:
                    break
                self._end.wait(LOOK)
            self._finish()
        finally:
            for watched in self.watched:
                watched.query.stop()
                watched.query.close()
        return not any(watched.state is State.FAILED for watched in self.watched)

    @property
    def exit_code(self) -> int:
        """0 when none gave up, 3 when the checkpoint of one cannot go on, else 1."""
        gave_up = [one.failure.cause for one in self.watched if one.state is State.FAILED and one.failure]
        return max((cause.exit_code for cause in gave_up), default=0)

    def _over(self) -> bool:
        """Have all ended, or has one given up? One that gave up ends the run: a dead query is never left unseen."""
        states = {watched.state for watched in self.watched}
        return State.FAILED in states or states <= {State.ENDED}

    def _look(self, watched: Watched) -> None:
        match watched.state:
            case State.WAITING | State.RETRYING:
                if time.monotonic() >= watched.start_at and not self._held(watched):
                    self._start(watched)
            case State.RUNNING:
                self._check(watched)
            case State.ENDED | State.FAILED:
                pass

    def _held(self, watched: Watched) -> bool:
        """Does it wait for the first query's first batch? One that has no rows to read lets the others go on."""
        first = self.watched[0]
        if watched is first or watched.state is not State.WAITING or time.monotonic() >= self.alone_until:
            return False
        return first.state is State.RUNNING and not first.query.delivered and not first.query.idle

    def _start(self, watched: Watched) -> None:
        try:
            watched.query.start()
        except (MillstreamError, PySparkException, OSError) as error:
            self._failed(watched, classify(None, error))
        else:
            watched.state = State.RUNNING

    def _check(self, watched: Watched) -> None:
        """Has it ended, and why? A delivered batch ends a row of failures."""
        query = watched.query
        if watched.failures and query.delivered:
            watched.failures, watched.failing_since = 0, None
        if query.active or query.handle is None:
            query.look()
            if query.past_gaps():
                query.ask_to_end()
            self._listen(watched)
            return
        error = query.handle.exception()
        raised = query.delivery.failure if query.delivery else None
        query.close()
        query.settle()
        if error is None and query.following is not None:
            # The gaps are passed; from here on the query ends at one again.
            watched.query, watched.state = query.following, State.WAITING
        elif error is None:
            watched.state = State.ENDED
            self.events.tell("query_stopped", query.name, reason="nothing more to read")
        else:
            self._failed(watched, self._named(query, classify(error, raised)))

    def _named(self, query: RunningQuery, failure: Failure) -> Failure:
        """For records that are gone: which, as far as their source tells."""
        if failure.cause is not Cause.GONE:
            return failure
        try:
            lost = query.lost()
        except MillstreamError:
            return failure
        return failure if lost is None else Failure(Cause.GONE, lost.what, lost.fix)

    def _listen(self, watched: Watched) -> None:
        """Tell of a source that has not answered for a while, and that it answers again."""
        source = watched.query.waits_for()
        if source is None:
            if watched.silence_told:
                self.events.tell("going_on", watched.query.name)
            watched.silent_since, watched.silence_told = None, False
            return
        since = watched.silent_since = watched.silent_since or time.monotonic()
        if not watched.silence_told and time.monotonic() - since > SILENCE:
            watched.silence_told = True
            self.events.tell("waiting", watched.query.name, source=source, seconds=SILENCE)

    def _failed(self, watched: Watched, failure: Failure) -> None:
        """Decide whether it starts again: a wait, or last words that name the batch and what it reads."""
        watched.failure = failure
        watched.failures += 1
        name = watched.query.name
        batch = watched.query.unfinished() if watched.query.handle is not None else None
        why_not = self._spent(watched, failure, batch)
        if why_not is None:
            wait = self.backoff.wait(watched.failures, self.chance)
            watched.state, watched.start_at = State.RETRYING, time.monotonic() + wait
            self.events.tell(
                "retry", name, reason=failure.message, wait_seconds=round(wait, 1), failures=watched.failures
            )
            return
        watched.state = State.FAILED
        poisoned = failure.cause in (Cause.DEFECT, Cause.CRASH) and batch is not None
        found = (
            watched.query.poison(batch.batch) if failure.cause is Cause.DEFECT and batch is not None else None
        )
        self.events.tell(
            "query_failed",
            name,
            cause=failure.cause.value,
            reason=f"{failure.message}{why_not}",
            fix=failure.fix or (POISONED if poisoned else ""),
            batch=batch.batch if batch else None,
            reads=list(batch.reads) if batch else [],
            record=list(found.reads) if found and batch and found.reads != batch.reads else [],
            value=found.value if found else None,
        )

    def _spent(self, watched: Watched, failure: Failure, batch: Unfinished | None) -> str | None:
        """None when it may start again; else what is to be added to the reason, which may be nothing."""
        now = time.monotonic()
        started = watched.failing_since = watched.failing_since or now
        recent = [at for at in watched.failed_at if now - at < self.backoff.within.seconds]
        watched.failed_at = [*recent, now]
        at = batch.batch if batch else None
        died = failure.cause is Cause.CRASH
        watched.deaths = watched.deaths + 1 if died and at == watched.batch else int(died)
        watched.batch = at
        if failure.cause not in (Cause.OUTAGE, Cause.CRASH):
            return ""
        if watched.deaths >= DEATHS:
            return f" ({DEATHS} times in a row)"
        if now - started >= self.backoff.give_up_after.seconds:
            return f" (for {self.backoff.give_up_after})"
        if len(watched.failed_at) > self.backoff.restarts:
            return f" (failed {len(watched.failed_at)} times in {self.backoff.within})"
        return None

    def _finish(self) -> None:
        """Let running queries finish their batch; a second request interrupts them."""
        running = [
            watched for watched in self.watched if watched.state is State.RUNNING and watched.query.active
        ]
        if running:
            self.events.tell("stopping", queries=[watched.query.name for watched in running])
        while any(not watched.query.ended() for watched in running) and not self._now.is_set():
            for watched in running:
                watched.query.ask_to_end()
            self._now.wait(LOOK / 2)
        for watched in running:
            watched.query.settle()
            error = watched.query.handle.exception() if watched.query.handle else None
            if error is not None and not self._now.is_set():
                raised = watched.query.delivery.failure if watched.query.delivery else None
                self._failed(watched, classify(error, raised))
            else:
                watched.state = State.ENDED
                self.events.tell("query_stopped", watched.query.name, reason="asked to end")
