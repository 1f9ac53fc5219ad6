"""Waiting for Spark's reports ends in time, whether or not they have all come."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from millstream.engine.events.listener_bus import wait_for_reports


def session(raises: str | None) -> Any:
    """A session whose listener bus raises a Java exception of that class."""

    def wait(_: int) -> None:
        if raises:
            kind = SimpleNamespace(getName=lambda: raises)
            raise Py4JJavaError("waitUntilEmpty", SimpleNamespace(_target_id="o1", getClass=lambda: kind))

    bus = SimpleNamespace(waitUntilEmpty=wait)
    return SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: SimpleNamespace(listenerBus=lambda: bus)))


@pytest.mark.parametrize(
    ("raises", "all_came"), [(None, True), ("java.util.concurrent.TimeoutException", False)]
)
def test_reports_that_keep_coming_do_not_end_a_run(raises: str | None, all_came: bool) -> None:
    assert wait_for_reports(session(raises)) is all_came


def test_another_failure_of_the_bus_is_told() -> None:
    with pytest.raises(Py4JJavaError):
        wait_for_reports(session("java.lang.IllegalStateException"))
