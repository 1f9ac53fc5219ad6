"""What a user is doing, from what the user did: state for each user, with a time-out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.sql import Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOUR = 60 * 60 * 1000  # Spark counts time in milliseconds
STATUS = {"sign_in": "signed in", "work": "busy", "pause": "idle"}


def millis(at: datetime) -> int:
    """A time of Spark's in milliseconds since 1970. Frames show it in UTC without the zone, rows with it."""
    time = at if at.tzinfo else at.replace(tzinfo=UTC)
    return (time - EPOCH) // timedelta(milliseconds=1)


def moment(at: int) -> datetime:
    """The other way round."""
    return EPOCH + timedelta(milliseconds=at)


def arrived(rows: Iterable[Any]) -> list[Any]:
    """Rows of one user in the order of the topic: a batch has them in none, and must not matter."""
    return sorted(rows, key=lambda row: row.offset)


class Status:
    """The newest status of a user; gone by event time, an hour after the newest action.

    `last` and `handle` are set before the first call: the spec declares the one, Spark gives the other.
    """

    last: Any
    handle: Any

    def handleInputRows(self, key: Any, rows: Iterator[Row], timers: Any) -> Iterator[Row]:  # noqa: N802
        """The rows of one user in a batch: one after the other, as if each came alone."""
        user, before, change = key[0], self.last.get(), None
        if before is not None:
            self.handle.deleteTimer(before[2])
        for row in arrived(rows):
            at = millis(row.event_time)
            if before is not None and at < before[1]:
                continue  # older than what is known
            if before is not None and self.over(at, before[2]):
                before = None
            if row.action == "sign_out":
                before, change = None, Row(user_id=user, status="gone", since=moment(at))
                continue
            status = STATUS.get(row.action, before[0] if before else "signed in")
            if before is None or status != before[0]:
                change = Row(user_id=user, status=status, since=moment(at))
            before = (status, at, self.deadline(at, timers))
        if before is None:
            self.last.clear()
        else:
            self.last.update(before)
            self.handle.registerTimer(before[2])
        if change is not None:
            yield change

    def handleExpiredTimer(self, key: Any, timers: Any, expired: Any) -> Iterator[Row]:  # noqa: ARG002, N802
        """Nothing was heard for an hour: forget the user, and say so."""
        self.last.clear()
        yield Row(user_id=key[0], status="gone", since=moment(expired.getExpiryTimeInMs()))

    def deadline(self, at: int, timers: Any) -> int:  # noqa: ARG002
        """When the user is gone if nothing more is heard."""
        return at + HOUR

    def over(self, at: int, until: int) -> bool:
        """Was the user gone before an action of that time? The watermark may not have come so far yet."""
        return at >= until


class StatusByClock(Status):
    """The same by the machine's clock: an hour after the action *arrived*."""

    def deadline(self, at: int, timers: Any) -> int:  # noqa: ARG002
        """An hour from this batch."""
        return timers.getCurrentProcessingTimeInMs() + HOUR

    def over(self, at: int, until: int) -> bool:  # noqa: ARG002
        """The clock's timer tells."""
        return False


class Alerts:
    """A row when a user goes from idle to busy, and when a busy user falls silent; none for other changes."""

    last: Any
    handle: Any

    def handleInputRows(self, key: Any, rows: Iterator[Row], timers: Any) -> Iterator[Row]:  # noqa: ARG002, N802
        """The actions of one user in a batch: one after the other, as if each came alone."""
        user, (status, until) = key[0], self.last.get() or ("", 0)
        if until:
            self.handle.deleteTimer(until)
        for row in arrived(rows):
            at = millis(row.event_time)
            if at + HOUR < until:
                continue  # older than what is known
            if until and at >= until:
                yield from self.silent(user, status, until)
                status = ""
            change = (status, STATUS.get(row.action, status))
            if change == ("idle", "busy"):
                yield Row(user_id=user, alert="back at work", at=row.event_time)
            status, until = change[1], at + HOUR
        self.last.update((status, until))
        self.handle.registerTimer(until)

    def handleExpiredTimer(self, key: Any, timers: Any, expired: Any) -> Iterator[Row]:  # noqa: ARG002, N802
        """An hour without a word."""
        yield from self.silent(key[0], self.last.get()[0], expired.getExpiryTimeInMs())
        self.last.clear()

    def silent(self, user: str, status: str, at: int) -> Iterator[Row]:
        """Return the row of a user who has timed out."""
        if status == "busy":
            yield Row(user_id=user, alert="fell silent while busy", at=moment(at))


class Habits:
    """How much a user does, what came last, and what most often of late: a value, a list and a map.

    The map's entries are deleted automatically, a day after they were last written (`ttl`), without a row.
    """

    total: Any
    latest: Any
    times: Any

    def handleInitialState(self, key: Any, row: Row, timers: Any) -> None:  # noqa: ARG002, N802
        """Once, before the first batch: a row of `earlier`, with what was counted elsewhere."""
        self.total.update((row.actions,))

    def handleInputRows(self, key: Any, rows: Iterator[Row], timers: Any) -> Iterator[Row]:  # noqa: ARG002, N802
        """The actions of one user in a batch, in the order of the topic."""
        came = [row.action for row in arrived(rows)]
        total = (self.total.get() or (0,))[0] + len(came)
        self.total.update((total,))
        # Without a bound a list is a leak: the last three are kept.
        latest = [*(one[0] for one in self.latest.get()), *came][-3:]
        self.latest.put([(action,) for action in latest])
        for action in came:
            before = self.times.getValue((action,))[0] if self.times.containsKey((action,)) else 0
            self.times.updateValue((action,), (before + 1,))
        # The most frequent; of several the first by the alphabet.
        counted = [(-times[0], action[0]) for action, times in self.times.iterator()]
        yield Row(user_id=key[0], actions=total, latest=" ".join(latest), of_late=min(counted)[1])


def status_row(user: str, status: str, at: int) -> pd.DataFrame:
    """One row of the result."""
    return pd.DataFrame({"user_id": [user], "status": [status], "since": [pd.Timestamp(at, unit="ms")]})


def older(key: Any, frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
    """As `Status`, by `applyInPandasWithState`: one function for rows and time-outs, one row of state."""
    user = key[0]
    if state.hasTimedOut:
        at = state.get[1] + HOUR
        state.remove()
        yield status_row(user, "gone", at)
        return
    before, change = state.get if state.exists else None, None
    for row in arrived(row for frame in frames for row in frame.itertuples()):
        at = millis(row.event_time)
        if before is not None and at < before[1]:
            continue
        if before is not None and at >= before[1] + HOUR:
            before = None
        if row.action == "sign_out":
            before, change = None, status_row(user, "gone", at)
            continue
        status = STATUS.get(row.action, before[0] if before else "signed in")
        if before is None or status != before[0]:
            change = status_row(user, status, at)
        before = (status, at)
    if before is not None:
        state.update(before)
        # A call without a time-out leaves none behind: it is set anew each time.
        state.setTimeoutTimestamp(before[1] + HOUR)
    elif state.exists:
        state.remove()
    if change is not None:
        yield change
