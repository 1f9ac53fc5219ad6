"""The server answers who may ask, and nobody else; it has bounds."""

from __future__ import annotations

import http.client
import json
import os
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest

from millstream.dashboard.http import app, server
from millstream.dashboard.http.auth import HEADERS, AccessGuard
from millstream.dashboard.replay_server import GeneratedPreviews
from millstream.diagnostics.failure import NotReady
from millstream.engine.events.event_bus import Event
from unit.dashboard.conftest import batch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from millstream.dashboard.http.event_stream import EventStream

TOKEN = "t0ken-of-this-run"


@pytest.fixture
def served(feed: EventStream, tmp_path: Path) -> Iterator[app.Page]:
    (tmp_path / "static/assets").mkdir(parents=True)
    (tmp_path / "static/index.html").write_text("<!doctype html><title>page</title>")
    (tmp_path / "static/assets/a-1.js").write_text("let a")
    (tmp_path / "secret.txt").write_text("not for readers")
    page = app.serve(feed, GeneratedPreviews(), port=0, static=tmp_path / "static")
    yield page
    page.close()


def ask(
    where: app.Page, path: str, method: str = "GET", **headers: str
) -> tuple[int, http.client.HTTPMessage, bytes]:
    """Status, headers and body of one answer."""
    connection = http.client.HTTPConnection("127.0.0.1", where.server.server_address[1], timeout=60)
    try:
        connection.request(
            method, path, headers={name.replace("_", "-"): item for name, item in headers.items()}
        )
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def stream(where: app.Page, path: str = "/api/events", **headers: str) -> Iterator[dict[str, Any]]:
    """The events of a stream, as `kind`, `id` and `data`."""
    connection = http.client.HTTPConnection("127.0.0.1", where.server.server_address[1], timeout=60)
    try:
        connection.request(
            "GET", path, headers={name.replace("_", "-"): item for name, item in headers.items()}
        )
        actual: dict[str, Any] = {}
        for raw in connection.getresponse():
            name, _, value = raw.decode().rstrip("\n").partition(": ")
            if name:
                actual[name] = value
            elif "event" in actual:
                yield {"kind": actual["event"], "id": actual.get("id"), "data": json.loads(actual["data"])}
                actual = {}
    finally:
        connection.close()


def test_the_state_is_served_with_headers_that_let_no_other_site_in(served: app.Page) -> None:
    status, headers, body = ask(served, "/api/state")

    assert (status, json.loads(body)["state"]) == (200, "failed")
    assert {name: headers[name] for name in HEADERS} == HEADERS
    assert headers["Cache-Control"] == "no-store"
    assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1:1", "", "localhost.evil:{port}"]
)
def test_a_name_that_is_not_the_pages_is_refused(served: app.Page, host: str) -> None:
    port = served.server.server_address[1]

    assert ask(served, "/api/state", Host=host.format(port=port))[0] == 403
    assert ask(served, "/api/state", Host=f"localhost:{port}")[0] == 200


def test_another_site_is_refused_and_a_link_from_it_is_not(served: app.Page) -> None:
    assert ask(served, "/api/state", Origin="https://evil.example")[0] == 403
    assert ask(served, "/api/state", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors")[0] == 403
    assert ask(served, "/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")[0] == 200
    assert ask(served, "/api/state", Sec_Fetch_Site="same-origin", Origin=served.origin.rstrip("/"))[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_but_reading_is_answered(served: app.Page, method: str) -> None:
    assert ask(served, "/api/state", method)[0] == 405


def test_head_has_the_headers_and_no_body(served: app.Page) -> None:
    status, headers, body = ask(served, "/api/state", "HEAD")

    assert (status, body) == (200, b"")
    assert int(headers["Content-Length"]) > 1000


def test_with_a_token_nothing_is_told_without_it(served: app.Page) -> None:
    port = served.server.server_address[1]
    served.server.guard = AccessGuard(port, TOKEN)

    for path in ("/", "/api/state", "/api/events", "/metrics", "/assets/a-1.js", "/healthz/.."):
        status, _, body = ask(served, path)
        assert (path, status) == (path, 401)
        assert TOKEN.encode() not in body
    assert ask(served, "/api/state", Authorization="Bearer wrong")[0] == 401
    assert ask(served, "/?token=wrong")[0] == 401
    assert ask(served, "/api/state", Authorization=f"Bearer {TOKEN}")[0] == 200


def test_a_probe_of_another_machine_needs_no_token_and_learns_no_more_than_its_status(
    served: app.Page,
) -> None:
    port = served.server.server_address[1]
    served.server.guard = AccessGuard(port, TOKEN)

    alive = ask(served, "/healthz", Host="10.1.2.3:4711")
    ready = ask(served, "/readyz", Host="10.1.2.3:4711")

    assert (alive[0], json.loads(alive[2])) == (200, {"alive": True})
    assert (ready[0], json.loads(ready[2])) == (503, {"ready": False})


def test_the_address_with_the_token_gives_a_cookie_and_hides_it(served: app.Page) -> None:
    served.server.guard = AccessGuard(served.server.server_address[1], TOKEN)

    status, headers, _ = ask(served, f"/?token={TOKEN}")

    assert (status, headers["Location"]) == (303, "/")
    assert {"HttpOnly", "SameSite=Strict"} <= {part.strip() for part in headers["Set-Cookie"].split(";")}
    assert ask(served, "/", Cookie=headers["Set-Cookie"].partition(";")[0])[0] == 200


def test_every_address_has_a_token_and_that_of_this_machine_does_not_ask_its_own_user_for_it(
    feed: EventStream,
) -> None:
    here = app.serve(feed, GeneratedPreviews(), port=0)
    everywhere = app.serve(feed, GeneratedPreviews(), host="0.0.0.0", port=0)
    try:
        for page in (here, everywhere):
            assert page.address == f"{page.origin}?token={page.server.guard.token}"
        assert ask(here, "/api/state")[0] == 200
        assert ask(everywhere, "/api/state")[0] == 401
    finally:
        here.close()
        everywhere.close()


@pytest.mark.parametrize(
    "path",
    ["/../secret.txt", "/..%2fsecret.txt", "/assets/../../secret.txt", "//etc/passwd", "/assets/%00", "/x"],
)
def test_no_file_beside_the_page_is_served(served: app.Page, path: str) -> None:
    status, _, body = ask(served, path)

    assert status == 404
    assert b"not for readers" not in body


def test_the_page_is_served_afresh_and_its_assets_for_ever(served: app.Page) -> None:
    status, headers, body = ask(served, "/")
    assert (status, headers["Content-Type"], headers["Cache-Control"]) == (
        200,
        "text/html; charset=utf-8",
        "no-store",
    )
    assert body.startswith(b"<!doctype html>")

    _, headers, _ = ask(served, "/assets/a-1.js")
    assert "immutable" in headers["Cache-Control"]
    assert headers["Content-Type"].startswith("text/javascript")


def test_a_page_that_is_not_built_says_so(served: app.Page, tmp_path: Path) -> None:
    (tmp_path / "static/index.html").unlink()

    status, _, body = ask(served, "/")

    assert (status, body.decode().startswith("The page is not built")) == (200, True)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/series?query=funnel", 200),
        ("/api/series?query=funnel&minutes=0", 400),
        ("/api/series?query=funnel&minutes=nan", 400),
        ("/api/series?query=funnel&minutes=x", 400),
        ("/api/series?query=nobody", 404),
        ("/api/rows?sink=sink.funnel.0", 200),
        ("/api/messages?source=clicks", 200),
        ("/api/letters", 200),
        ("/api/statestore?query=funnel", 200),
        ("/api/findings", 200),
        ("/metrics", 200),
        ("/healthz", 200),
        ("/readyz", 503),
        ("/api/nothing", 404),
        ("/" + "x" * 3000, 400),
    ],
)
def test_each_address_has_its_status(served: app.Page, path: str, status: int) -> None:
    assert ask(served, path)[0] == status


def test_an_error_says_what_to_do_and_shows_nothing_of_us(served: app.Page) -> None:
    class Broken(GeneratedPreviews):
        def letters(self) -> dict[str, Any]:
            raise RuntimeError("S3CR3T")

    object.__setattr__(served.server.answers, "looks", Broken())

    status, _, body = ask(served, "/api/letters")

    assert status == 500
    assert set(json.loads(body)) == {"error", "fix"}
    assert b"S3CR3T" not in body


def test_a_stream_begins_with_hello_and_the_state(served: app.Page) -> None:
    messages = stream(served)

    assert next(messages) == {
        "kind": "hello",
        "id": None,
        "data": {"run": "20260301-120000-4711", "replayed": True},
    }
    state = next(messages)
    assert (state["kind"], state["data"]["state"]) == ("state", "failed")
    assert "log" not in state["data"]


def test_what_a_check_found_reaches_a_page_that_was_opened_before_it(
    served: app.Page, feed: EventStream
) -> None:
    states = (message["data"] for message in stream(served) if message["kind"] == "state")
    assert {"findings", "plans", "guarantees"} <= set(next(states))

    feed.fold(batch(11, 64))
    unchanged = next(states)
    guarantee = {"query": "funnel", "sink": "delta lake/funnel", "guarantee": "exactly-once", "reasons": []}
    feed.fold(
        Event(
            "run_started",
            "",
            {"pipeline": "shop", "log": "x", "queries": ["funnel"], "guarantees": [guarantee]},
        )
    )

    assert not {"findings", "plans", "guarantees"} & set(unchanged)
    assert next(state for state in states if "guarantees" in state)["guarantees"] == [guarantee]


def test_a_lost_connection_is_filled_from_its_last_id(served: app.Page, feed: EventStream) -> None:
    messages = stream(served, Last_Event_ID="20260301-120000-4711:54")
    assert next(messages)["data"]["replayed"] is True

    entries = [next(messages), next(messages)]
    assert [entry["id"] for entry in entries] == ["20260301-120000-4711:55", "20260301-120000-4711:56"]
    feed.fold(batch(11, 64))
    following = next(item for item in messages if item["kind"] == "entry")
    assert following["id"] == "20260301-120000-4711:57"
    assert following["data"]["point"]["batch"] == 11


def test_an_id_that_is_not_known_any_more_says_so(served: app.Page) -> None:
    assert next(stream(served, Last_Event_ID="gone:1"))["data"]["replayed"] is False


def test_a_stream_ends_with_bye_when_the_run_does(served: app.Page, feed: EventStream) -> None:
    messages = stream(served)
    next(messages)

    feed.close()

    assert [item["kind"] for item in messages][-1] == "bye"


def test_a_request_that_does_not_come_is_closed(served: app.Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "REQUEST", 0.2)
    with socket.create_connection(("127.0.0.1", served.server.server_address[1]), timeout=60) as slow:
        slow.sendall(b"GET /api/state HTTP/1.1\r\nHost: x\r\nX-A: ")

        assert slow.recv(100) == b""


def test_connections_beyond_the_bound_are_turned_away(served: app.Page) -> None:
    served.server._free = threading.BoundedSemaphore(1)
    address = ("127.0.0.1", served.server.server_address[1])
    with (
        socket.create_connection(address, timeout=60),
        socket.create_connection(address, timeout=60) as second,
    ):
        assert second.recv(100).startswith(b"HTTP/1.1 503")


def test_a_taken_port_is_passed_over_unless_it_was_asked_for(
    feed: EventStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = app.serve(feed, GeneratedPreviews(), port=0)
    port = first.server.server_address[1]
    monkeypatch.setattr(app, "PORT", port)
    try:
        second = app.serve(feed, GeneratedPreviews())
        assert second.server.server_address[1] > port
        second.close()
        with pytest.raises(NotReady, match=f"port {port}"):
            app.serve(feed, GeneratedPreviews(), port=port)
    finally:
        first.close()


STRANGER = 54_321


def ask_as(uid: int, where: app.Page, paths: list[str]) -> dict[str, int]:
    """The status of each path for a process of that user."""
    # What the answer to a request needs is imported: another user may not read our interpreter's files.
    ask(where, "/healthz")
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            os.write(writing, json.dumps({path: ask(where, path)[0] for path in paths}).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as wrapper:
        text = wrapper.read()
    os.waitpid(child, 0)
    data: dict[str, int] = json.loads(text)
    return data


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may ask as another user")
def test_another_user_of_this_machine_needs_the_token(served: app.Page) -> None:
    rows, token = "/api/rows?sink=sink.funnel.0", served.server.guard.token
    closed = ["/", "/api/state", rows, "/api/events", "/assets/a-1.js", "/?token=x", "/metrics/.."]
    public = {"/metrics": 200, "/healthz": 200, "/readyz": 503, f"/?token={token}": 303}

    got = ask_as(STRANGER, served, [*closed, *public])

    assert got == {**dict.fromkeys(closed, 401), **public}
    assert ask(served, "/api/state")[0] == 200


def test_what_a_stranger_may_read_says_nothing_of_errors(served: app.Page) -> None:
    data = json.loads(ask(served, "/readyz")[2])
    public = served.server.answers.public("/readyz")

    assert set(data) == {"ready", "worst"}
    assert public is not None
    assert set(json.loads(public.body)) == {"ready"}
    assert served.server.answers.public("/api/state") is None


def test_a_name_that_points_here_is_refused_though_the_browser_is_of_the_same_user(served: app.Page) -> None:
    port = served.server.server_address[1]
    served.server.guard = AccessGuard(port, TOKEN, is_local=True)

    assert ask(served, "/api/state", Host=f"evil.example:{port}")[0] == 403
    assert ask(served, "/api/state")[0] == 200
