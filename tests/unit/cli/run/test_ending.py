"""A run ends gracefully when it is asked to, and at once only after a second signal."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any

from millstream.cli.run import run

if TYPE_CHECKING:
    import pytest


class Supervisor:
    """Counts how often it is asked to end."""

    ends = 0

    def end(self) -> None:
        self.ends += 1


def ask_on_the_page(ending: run._Ending, times: int) -> None:
    """Ask as the server of the page does, in a thread for each request."""
    for _ in range(times):
        request = threading.Thread(target=ending.request)
        request.start()
        request.join()


def test_the_page_ends_a_run_once_however_often_it_is_asked() -> None:
    supervisor: Any = Supervisor()
    with run._Ending() as ending:
        ending.watch(supervisor)

        ask_on_the_page(ending, times=3)

        assert (supervisor.ends, ending.is_requested, ending.is_immediate) == (1, True, False)
        signal.raise_signal(signal.SIGTERM)
        assert (supervisor.ends, ending.is_immediate) == (2, True)


def test_the_page_does_not_hurry_a_run_that_a_signal_has_asked_to_end() -> None:
    supervisor: Any = Supervisor()
    with run._Ending() as ending:
        ending.watch(supervisor)
        signal.raise_signal(signal.SIGTERM)

        ask_on_the_page(ending, times=1)

        assert (supervisor.ends, ending.is_immediate) == (1, False)


def test_a_second_request_that_comes_before_the_first_signal_is_handled_sends_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    signals: list[int] = []
    ending = run._Ending()
    monkeypatch.setattr(signal, "raise_signal", signals.append)

    ask_on_the_page(ending, times=2)

    assert signals == [signal.SIGTERM]
