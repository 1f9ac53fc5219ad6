"""A webhook is told of each change once, asked again while it is away, and waited for by nobody."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest

from millstream.dashboard.webhook import Webhook

if TYPE_CHECKING:
    from millstream.dashboard.shapes import Alert

ADDRESS = "https://hooks.example.com/S3CR3T"


class Taken:
    """A webhook that is away for some tries, then keeps what it is told."""

    def __init__(self, away: int = 0, wanted: int = 1) -> None:
        self.told: list[dict[str, object]] = []
        self.tries = 0
        self.done = threading.Event()
        self._away, self._wanted = away, wanted

    def __call__(self, address: str, body: bytes) -> None:
        assert address == ADDRESS
        self.tries += 1
        if self.tries <= self._away:
            raise ConnectionRefusedError(111, f"refused: {ADDRESS}")
        self.told.append(json.loads(body))
        if len(self.told) == self._wanted:
            self.done.set()


def alert(*, firing: bool) -> Alert:
    return {
        "name": "lag > 5",
        "query": "funnel",
        "firing": firing,
        "since": None,
        "value": 6.0,
        "text": "6 records are not yet read",
    }


def test_the_begin_and_the_end_of_an_alert_are_told_once_each() -> None:
    taken = Taken(wanted=2)
    hook = Webhook(ADDRESS, "shop", send=taken)

    for firing in (False, True, True, True, False, False):
        hook.take([alert(firing=firing)])

    assert taken.done.wait(10)
    hook.close()
    assert [one["firing"] for one in taken.told] == [True, False]
    assert taken.told[0]["text"] == "shop.funnel: lag > 5: 6 records are not yet read"
    assert str(taken.told[1]["text"]).startswith("over: ")


def test_a_webhook_that_is_away_is_asked_again() -> None:
    taken = Taken(away=3)
    hook = Webhook(ADDRESS, "shop", send=taken, waits=(0.001, 0.001, 0.001))

    hook.take([alert(firing=True)])

    assert taken.done.wait(10)
    assert taken.tries == 4


def test_the_end_of_a_run_waits_for_no_webhook_and_logs_no_address(caplog: pytest.LogCaptureFixture) -> None:
    tried = threading.Event()

    def away(address: str, body: bytes) -> None:
        tried.set()
        raise TimeoutError(f"{address} {len(body)}")

    hook = Webhook(ADDRESS, "shop", send=away, waits=(3600.0,))
    hook.take([alert(firing=True)])
    assert tried.wait(10)

    hook.close()

    assert not hook._thread.is_alive()
    assert "lag > 5" in caplog.text
    assert "S3CR3T" not in caplog.text


def test_an_address_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="begins with http"):
        Webhook("file:///etc/passwd", "shop")
