"""What a user is doing, from what the user did: state for each user, with a time-out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.sql import Row

if TYPE_CHECKING:
    from collections.abc import Iterator

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


class Status:
    """The newest status of a user; gone by event time, an hour after the newest action.

    `last` and `handle` are set before the first call: the spec declares the one, Spark gives the other.
    """

    last: Any
    handle: Any

    def handleInputRows(self, key: Any, rows: Iterator[Row], timers: Any) -> Iterator[Row]:  # noqa: N802
        """The rows of one user in a batch, which come in no order: the newest action decides."""
        user = key[0]
        newest = max(rows, key=lambda row: row.event_time)
        at = millis(newest.event_time)
        before = self.last.get()
        if before is not None:
            if at < before[1]:
                return  # older than what is known
            self.handle.deleteTimer(before[2])
        if newest.action == "sign_out":
            self.last.clear()
            yield Row(user_id=user, status="gone", since=moment(at))
            return
        status = STATUS.get(newest.action, before[0] if before else "signed in")
        until = self.deadline(at, timers)
        self.last.update((status, at, until))
        self.handle.registerTimer(until)
        if before is None or status != before[0]:
            yield Row(user_id=user, status=status, since=moment(at))

    def handleExpiredTimer(self, key: Any, timers: Any, expired: Any) -> Iterator[Row]:  # noqa: ARG002, N802
        """Nothing was heard for an hour: forget the user, and say so."""
        self.last.clear()
        yield Row(user_id=key[0], status="gone", since=moment(expired.getExpiryTimeInMs()))

    def deadline(self, at: int, timers: Any) -> int:  # noqa: ARG002
        """When the user is gone if nothing more is heard."""
        return at + HOUR


class StatusByClock(Status):
    """The same by the machine's clock: an hour after the action *arrived*."""

    def deadline(self, at: int, timers: Any) -> int:  # noqa: ARG002
        """An hour from this batch."""
        return timers.getCurrentProcessingTimeInMs() + HOUR


class Alerts:
    """A row when a user goes from idle to busy, and when a busy user falls silent; none for other changes."""

    last: Any
    handle: Any

    def handleInputRows(self, key: Any, rows: Iterator[Row], timers: Any) -> Iterator[Row]:  # noqa: ARG002, N802
        """The actions of one user in a batch, in the order they happened."""
        status, until = self.last.get() or ("", 0)
        if until:
            self.handle.deleteTimer(until)
        for row in sorted(rows, key=lambda one: one.event_time):
            change = (status, STATUS.get(row.action, status))
            if change == ("idle", "busy"):
                yield Row(user_id=key[0], alert="back at work", at=row.event_time)
            status, until = change[1], millis(row.event_time) + HOUR
        self.last.update((status, until))
        self.handle.registerTimer(until)

    def handleExpiredTimer(self, key: Any, timers: Any, expired: Any) -> Iterator[Row]:  # noqa: ARG002, N802
        """An hour without a word."""
        if self.last.get()[0] == "busy":
            at = moment(expired.getExpiryTimeInMs())
            yield Row(user_id=key[0], alert="fell silent while busy", at=at)
        self.last.clear()


def latest(frames: Iterator[pd.DataFrame]) -> tuple[str, int]:
    """The newest action and its time."""
    actions = [
        (action, millis(at))
        for frame in frames
        for action, at in zip(frame["action"], frame["event_time"], strict=True)
    ]
    return max(actions, key=lambda one: one[1])


def told(user: str, status: str, at: int) -> pd.DataFrame:
    """One row of the result."""
    return pd.DataFrame({"user_id": [user], "status": [status], "since": [pd.Timestamp(at, unit="ms")]})


def older(key: Any, frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
    """As `Status`, by `applyInPandasWithState`: one function for rows and time-outs, one row of state."""
    user = key[0]
    if state.hasTimedOut:
        at = state.get[1] + HOUR
        state.remove()
        yield told(user, "gone", at)
        return
    action, at = latest(frames)
    before = state.get if state.exists else None
    if before is not None and at < before[1]:
        # A call without a time-out leaves none behind: it is set anew each time.
        state.setTimeoutTimestamp(before[1] + HOUR)
        return
    if action == "sign_out":
        state.remove()
        yield told(user, "gone", at)
        return
    status = STATUS.get(action, before[0] if before else "signed in")
    state.update((status, at))
    state.setTimeoutTimestamp(at + HOUR)
    if before is None or status != before[0]:
        yield told(user, status, at)
