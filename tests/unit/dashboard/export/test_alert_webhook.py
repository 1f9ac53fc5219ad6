"""A webhook is told of each change once, asked again while it is away, and waited for by nobody."""

from __future__ import annotations

import json
import socket
import threading
from typing import TYPE_CHECKING, cast

import pytest

from millstream.dashboard.export.alert_webhook import Webhook
from millstream.dashboard.export.prometheus import EventCounters
from millstream.dashboard.http import event_stream
from millstream.dashboard.http.event_stream import EventStream
from millstream.dashboard.state.alerts import Alarms
from millstream.diagnostics.failure import InvalidInput
from millstream.engine.events.event_bus import Event
from unit.dashboard.conftest import START, at, batch, folded, started

if TYPE_CHECKING:
    from millstream.dashboard.state.api_schema import Alert, Document

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


def state(*, firing: bool) -> Document:
    """The part of a run's state that a webhook reads."""
    return cast(
        "Document", {"queries": [{"name": "funnel", "state": "running"}], "alerts": [alert(firing=firing)]}
    )


def test_the_begin_and_the_end_of_an_alert_are_told_once_each() -> None:
    duration = Taken(wanted=2)
    hook = Webhook(ADDRESS, "shop", send=duration)

    for firing in (False, True, True, True, False, False):
        hook.take(state(firing=firing))

    assert duration.done.wait(60)
    hook.close()
    assert [item["firing"] for item in duration.told] == [True, False]
    assert duration.told[0]["text"] == "shop.funnel: lag > 5: 6 records are not yet read"
    assert str(duration.told[1]["text"]).startswith("over: ")


def test_a_webhook_that_is_away_is_asked_again() -> None:
    duration = Taken(away=3)
    hook = Webhook(ADDRESS, "shop", send=duration, waits=(0.001, 0.001, 0.001))

    hook.take(state(firing=True))

    assert duration.done.wait(60)
    assert duration.tries == 4


def test_the_end_of_a_run_waits_for_no_webhook_and_logs_no_address(caplog: pytest.LogCaptureFixture) -> None:
    event = threading.Event()

    def away(address: str, body: bytes) -> None:
        event.set()
        raise TimeoutError(f"{address} {len(body)}")

    hook = Webhook(ADDRESS, "shop", send=away, waits=(3600.0,))
    hook.take(state(firing=True))
    assert event.wait(60)

    hook.close()

    assert not hook._thread.is_alive()
    assert "lag > 5" in caplog.text
    assert "S3CR3T" not in caplog.text


def test_an_address_of_another_kind_is_refused() -> None:
    with pytest.raises(InvalidInput, match="does not begin with http"):
        Webhook("file:///etc/passwd", "shop")


def test_after_an_answer_that_is_not_http_the_next_alert_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        requests: list[bytes] = []
        both = threading.Event()

        def serve() -> None:
            # The first as a TLS port answers plain HTTP, the second as a webhook does.
            for output in (b"\x15\x03\x01\x00\x02\x02P", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"):
                client, _ = server.accept()
                with client:
                    requests.append(client.recv(65_536))
                    client.sendall(output)
            both.set()

        threading.Thread(target=serve, daemon=True).start()
        hook = Webhook(f"http://127.0.0.1:{server.getsockname()[1]}/hook", "shop", waits=())

        hook.take(state(firing=True))
        hook.take(state(firing=False))

        assert both.wait(60)
        hook.close()
        assert len(requests) == 2


def test_an_address_that_cannot_be_asked_ends_no_thread_and_is_printed_nowhere(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    hook = Webhook("http://127.0.0.1:1/S3CR3T with a space", "shop")

    hook.take(state(firing=True))
    hook.take(state(firing=False))
    hook.close()

    out, err = capfd.readouterr()
    assert [log_record.getMessage().rpartition(": ")[2] for log_record in caplog.records] == [
        "InvalidURL",
        "InvalidURL",
    ]
    assert "S3CR3T" not in caplog.text + out + err


FRESHNESS = "shop.funnel: freshness > 30 seconds:"
ENDED = "the run ended while this alert was firing"
FAILURE = Event(
    "query_failed", "funnel", {"cause": "defect", "reason": "division by zero", "fix": ""}, at(58)
)


def collect_messages(*events: Event, messages: int) -> list[tuple[object, object]]:
    """The messages about a run with these events that has an alert for events older than 30 seconds."""
    taken = Taken(wanted=messages)
    run = folded(started())
    run.alarms = Alarms.of(["freshness > 30 seconds"])
    feed = EventStream(run, counts=EventCounters(), clock=lambda: START + 60)
    hook = Webhook(ADDRESS, "shop", send=taken)
    feed.on_state = hook.take
    feed.start()
    for event in events:
        feed.take(event)
    feed.close()
    hook.close()
    assert taken.done.wait(60)
    return [(item["firing"], item["text"]) for item in taken.told]


def test_a_query_that_fails_ends_no_alert_and_is_told_with_its_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_stream, "BEAT", -1.0)

    assert collect_messages(batch(0, 6, newest=at(5)), FAILURE, messages=3) == [
        (True, f"{FRESHNESS} the newest event is 55 s old"),
        (True, "shop.funnel: query failed: division by zero"),
        (False, f"{FRESHNESS} {ENDED}"),
    ]


def test_an_alert_that_fires_when_its_query_stops_is_closed_with_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_stream, "BEAT", -1.0)
    stopped = Event("query_stopped", "funnel", {"reason": "asked to end"}, at(58))

    assert collect_messages(batch(0, 6, newest=at(5)), stopped, messages=2) == [
        (True, f"{FRESHNESS} the newest event is 55 s old"),
        (False, f"{FRESHNESS} {ENDED}"),
    ]


def test_what_happens_between_the_last_look_and_the_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "BEAT", float("inf"))

    assert collect_messages(batch(0, 6, newest=at(50)), FAILURE, messages=1) == [
        (True, "shop.funnel: query failed: division by zero")
    ]


def test_an_alert_that_is_over_before_the_end_is_not_closed_again() -> None:
    taken = Taken(wanted=2)
    hook = Webhook(ADDRESS, "shop", send=taken)

    hook.take(state(firing=True))
    hook.take(state(firing=False))
    hook.close()

    assert taken.done.wait(60)
    assert [str(item["text"]).partition(":")[0] for item in taken.told] == ["shop.funnel", "over"]
