"""When a query that fails is started again, and with which words it ends."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from millstream.diagnostics.failure import InvalidInput
from millstream.engine import supervisor as supervision
from millstream.engine.failure_classifier import FailureKind, QueryFailure
from millstream.engine.recovery.uncommitted_batch import UncommittedBatch
from millstream.engine.supervisor import POISONED, QueryPhase, Supervisor
from millstream.spec.backoff import Backoff
from millstream.spec.duration import Duration

READS = ("partition 0 of topic 'clicks', offsets 100 to 199",)
DIED = QueryFailure(FailureKind.CRASH, "a worker died")
AWAY = QueryFailure(FailureKind.OUTAGE, "Postgres is away")
BROKEN = QueryFailure(FailureKind.DEFECT, "a cast failed")


class Running:
    """A query that was in a batch when it failed."""

    name = "funnel"
    handle = object()
    batch: int | None = 12
    has_delivered = False

    def unfinished(self) -> UncommittedBatch | None:
        return None if self.batch is None else UncommittedBatch(self.batch, READS)

    def poison(self, batch: int) -> None:
        assert batch == self.batch

    def stop(self) -> None: ...

    def close(self) -> None: ...


class Watching:
    """A supervisor of that query, the events it told, and a clock that the test moves."""

    def __init__(self, backoff: Backoff) -> None:
        self.query, self.told = Running(), []
        self.supervisor = Supervisor([self.query], backoff, self)  # type: ignore[list-item, arg-type]
        (self.watched,) = self.supervisor.watched

    told: list[tuple[str, dict[str, Any]]]

    def emit(self, event: str, *_: str, **data: Any) -> None:
        self.told.append((event, data))

    def run_for_no_time(self) -> bool:
        """Run a query that has failed and waits for its next attempt until the end of the run."""
        self.watched.start_at = float("inf")
        return self.supervisor.run(0)

    def fail(self, failure: QueryFailure, times: int = 1) -> QueryPhase:
        for _ in range(times):
            self.supervisor._handle_failure(self.watched, failure)
        return self.watched.state


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(supervision.time, "monotonic", lambda: now[0])
    return now


def watching(**settings: Any) -> Watching:
    return Watching(Backoff(**settings))


def test_a_batch_in_which_a_process_dies_three_times_is_named_with_what_it_reads() -> None:
    watched = watching()

    assert watched.fail(DIED, 2) is QueryPhase.RETRYING
    assert watched.fail(DIED) is QueryPhase.FAILED

    event, data = watched.told[-1]
    assert event == "query_failed"
    assert data["reason"] == "a worker died (3 times in a row)"
    assert (data["batch"], data["reads"], data["fix"]) == (12, list(READS), POISONED)


def test_deaths_in_different_batches_do_not_add_up() -> None:
    watched = watching()
    for batch in range(6):
        watched.query.batch = batch
        assert watched.fail(DIED) is QueryPhase.RETRYING


def test_an_outage_between_two_deaths_begins_the_count_again() -> None:
    watched = watching()

    assert [watched.fail(failure) for failure in (DIED, DIED, AWAY, DIED)] == [QueryPhase.RETRYING] * 4


def test_a_defect_in_a_batch_is_named_at_once() -> None:
    watched = watching()

    assert watched.fail(BROKEN) is QueryPhase.FAILED
    assert watched.told[-1][1]["reads"] == list(READS)


class RaisedInJava(Py4JJavaError):
    """An exception that PySpark does not translate, without a JVM."""

    def __init__(self) -> None:
        pass

    def __str__(self) -> str:
        return "An error occurred while calling o1.start.\n: java.net.ConnectException: Connection refused"


def test_a_start_that_fails_in_java_because_a_server_is_away_is_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start() -> None:
        raise RaisedInJava

    watched = watching()
    monkeypatch.setattr(watched.query, "start", start, raising=False)

    watched.supervisor._start_query(watched.watched)

    assert watched.watched.state is QueryPhase.RETRYING


def test_missing_records_are_reported_though_their_checkpoint_cannot_be_read_at_that_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def explain() -> None:
        raise ConnectionError("the name node is away")

    watched = watching()
    monkeypatch.setattr(watched.query, "explain_data_loss", explain, raising=False)
    failure = QueryFailure(FailureKind.GONE, "records are gone")

    assert watched.supervisor._name_missing_records(watched.query, failure) is failure  # type: ignore[arg-type]


def test_an_outage_is_never_blamed_on_its_batch(clock: list[float]) -> None:
    watched = watching()

    assert watched.fail(AWAY, 10) is QueryPhase.RETRYING
    clock[0] += 15 * 60
    assert watched.fail(AWAY) is QueryPhase.FAILED
    assert watched.told[-1][1]["fix"] == ""
    assert watched.told[-1][1]["reason"] == "Postgres is away (for 15 minutes)"


def test_restarts_are_counted_in_a_time_whatever_is_delivered_between(clock: list[float]) -> None:
    watched = watching(restarts=3, within=Duration("1 minute"))
    for _ in range(3):
        assert watched.fail(AWAY) is QueryPhase.RETRYING
        watched.watched.failures, watched.watched.failing_since = 0, None
        clock[0] += 10

    assert watched.fail(AWAY) is QueryPhase.FAILED
    assert watched.told[-1][1]["reason"] == "Postgres is away (failed 4 times in 1 minute)"


def test_failures_of_long_ago_are_forgotten(clock: list[float]) -> None:
    watched = watching(restarts=1, within=Duration("1 minute"))
    for _ in range(5):
        assert watched.fail(AWAY) is QueryPhase.RETRYING
        watched.watched.failing_since = None
        clock[0] += 61


def test_a_failure_between_batches_names_none() -> None:
    watched = watching()
    watched.query.batch = None

    watched.fail(BROKEN)

    assert (watched.told[-1][1]["batch"], watched.told[-1][1]["reads"]) == (None, [])


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (BROKEN, 1),
        (QueryFailure(FailureKind.GONE, "gone"), 3),
        (QueryFailure(FailureKind.CHECKPOINT, "torn"), 3),
        (QueryFailure(FailureKind.FENCED, "x"), 3),
    ],
)
def test_the_exit_code_tells_a_checkpoint_that_cannot_go_on(failure: QueryFailure, code: int) -> None:
    watched = watching()

    watched.fail(failure)

    assert watched.supervisor.exit_code == code


@pytest.mark.parametrize("failure", [AWAY, DIED])
def test_a_run_whose_time_is_over_while_a_query_waits_for_its_next_attempt_has_failed(
    failure: QueryFailure,
) -> None:
    watched = watching()
    watched.fail(failure)

    assert not watched.run_for_no_time()

    assert watched.supervisor.exit_code == 1
    event, data = watched.told[-1]
    assert (event, data["batch"], data["reads"], data["fix"]) == ("query_failed", 12, list(READS), "")
    assert data["reason"] == f"{failure.message} (the time of the run is over; the next run continues here)"


def test_a_run_that_is_asked_to_end_while_a_query_waits_for_its_next_attempt_names_its_batch() -> None:
    watched = watching()
    watched.fail(AWAY)
    watched.supervisor.end()

    assert watched.run_for_no_time()

    event, data = watched.told[-1]
    assert event == "query_stopped"
    assert data["reason"] == (
        "batch 12 is not committed and runs again at the next start, because of: Postgres is away"
    )


class Batches(Running):
    """A query that runs until it is asked to end, and its batch has been committed."""

    def __init__(self) -> None:
        self.starts, self.asked = 0, False
        self.handle: Any = self
        self.delivery = self.following = None
        self.is_active = self.has_delivered = self.is_idle = False
        self.is_thread_alive = False

    def start(self) -> None:
        assert not self.is_thread_alive, "Spark has a query of this name"
        self.starts, self.asked, self.is_active = self.starts + 1, False, True

    def has_ended(self) -> bool:
        return not self.is_active and not self.is_thread_alive

    def ask_to_end(self) -> None:
        self.asked = True

    def exception(self) -> None:
        return None

    def has_passed_gaps(self) -> bool:
        return False

    def awaited_source(self) -> None:
        return None

    def look(self) -> None: ...

    def close(self) -> None: ...

    def settle(self) -> None: ...


class Told:
    """The events by their names."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def emit(self, event: str, *_: Any, **__: Any) -> None:
        self.events.append(event)


def looked_at(query: Batches) -> tuple[Supervisor, list[str]]:
    told = Told()
    made, events = Supervisor([query], Backoff(), told), told.events  # type: ignore[list-item, arg-type]
    made._look_at(made.watched[0])
    return made, events


def test_a_query_that_is_asked_to_restart_commits_its_batch_and_starts_again() -> None:
    query = Batches()
    made, events = looked_at(query)

    made.restart("funnel")
    made._look_at(made.watched[0])
    assert (query.asked, query.starts) == (True, 1)
    query.is_active = False
    made._look_at(made.watched[0])
    made._look_at(made.watched[0])
    made._look_at(made.watched[0])

    assert (query.starts, query.asked, made.watched[0].state) == (2, False, QueryPhase.RUNNING)
    assert events == []


def test_a_query_that_still_commits_its_last_batch_is_not_started_again_before() -> None:
    query = Batches()
    made, events = looked_at(query)

    made.restart("funnel")
    query.is_active, query.is_thread_alive = False, True
    for _ in range(3):
        made._look_at(made.watched[0])
    assert (query.starts, made.watched[0].state) == (1, QueryPhase.RUNNING)
    query.is_thread_alive = False
    for _ in range(2):
        made._look_at(made.watched[0])

    assert (query.starts, made.watched[0].state, events) == (2, QueryPhase.RUNNING, [])


@pytest.mark.parametrize(("is_idle", "state"), [(True, QueryPhase.RETRYING), (False, QueryPhase.FAILED)])
def test_an_outage_is_over_once_the_sources_respond_although_no_row_comes(
    clock: list[float], *, is_idle: bool, state: QueryPhase
) -> None:
    query = Batches()
    made, _ = looked_at(query)
    query.batch = None
    made._handle_failure(made.watched[0], AWAY)
    clock[0] += 60
    made._look_at(made.watched[0])
    query.is_idle = is_idle
    made._look_at(made.watched[0])

    clock[0] += 5 * 3600
    made._handle_failure(made.watched[0], AWAY)

    assert made.watched[0].state is state


def test_a_query_that_waits_for_its_next_attempt_starts_at_once() -> None:
    query = Batches()
    made, _ = looked_at(query)
    made.watched[0].state, made.watched[0].start_at = QueryPhase.RETRYING, float("inf")

    made.restart("funnel")
    made._look_at(made.watched[0])

    assert query.starts == 2


def test_no_query_restarts_once_another_has_given_up() -> None:
    told = Told()
    made = Supervisor([Batches(), Batches()], Backoff(), told)  # type: ignore[list-item, arg-type]
    made.watched[1].state = QueryPhase.FAILED

    with pytest.raises(InvalidInput, match="query 'funnel' has ended"):
        made.restart("funnel")


def test_a_query_that_has_ended_or_does_not_exist_cannot_restart() -> None:
    made, _ = looked_at(Batches())
    with pytest.raises(InvalidInput, match="there is no query 'carts'"):
        made.restart("carts")

    made.end()

    with pytest.raises(InvalidInput, match="query 'funnel' has ended"):
        made.restart("funnel")
