"""Serve the live page over HTTP: read-only, with bounded connections and timeouts."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from millstream.dashboard.http.auth import HEADERS
from millstream.dashboard.http.event_stream import BEAT, FRESH
from millstream.dashboard.http.peer_user import is_same_user
from millstream.dashboard.http.routes import Response, error_response

if TYPE_CHECKING:
    from millstream.dashboard.http.auth import AccessGuard
    from millstream.dashboard.http.routes import Routes

# A browser uses one stream and a few other requests; a few people may watch at once.
CONNECTIONS = 48
STREAMS = 16
# Seconds within which a whole request must arrive; a request that trickles in would block a thread.
REQUEST = 10.0
# Maximum length of a path; the page requests only shorter ones.
ADDRESS = 2_000
ACTIONS = "/api/actions/"
# Answered to everyone, as a kubelet has no token: they say whether the run is alive and ready, and no more.
PROBES = ("/healthz", "/readyz")
# Omitted from streamed states, because they do not change or are streamed separately.
_CHECK = ("findings", "guarantees", "plans")
_STILL = (*_CHECK, "log")


class Server(ThreadingHTTPServer):
    """Serves the page until `shutdown`."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 32

    def __init__(self, address: tuple[str, int], answers: Routes) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, Handler)
        self.answers = answers
        self.guard: AccessGuard
        self.streams = threading.BoundedSemaphore(STREAMS)
        self._free = threading.BoundedSemaphore(CONNECTIONS)
        self._due: dict[socket.socket, float] = {}

    def process_request(self, request: Any, client_address: Any) -> None:
        """Hand a connection to a thread, or refuse it if there are too many."""
        if not self._free.acquire(blocking=False):
            with suppress(OSError):
                request.settimeout(1)
                request.sendall(
                    b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                )
            self.shutdown_request(request)
            return
        self._due[request] = time.monotonic() + REQUEST
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve one connection, then free its slot."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._due.pop(request, None)
            self._free.release()

    def service_actions(self) -> None:
        """Close connections whose request has not arrived in time."""
        now = time.monotonic()
        for request, due in list(self._due.items()):
            if now > due:
                self._due.pop(request, None)
                with suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)

    def mark_complete(self, request: Any) -> None:
        """Mark a request as complete, so that its response may take longer."""
        self._due.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore readers that have disconnected."""


class Handler(BaseHTTPRequestHandler):
    """Responds to one request of one connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version = "millstream"
    sys_version = ""
    timeout = REQUEST

    def do_GET(self) -> None:
        """Respond to a request, if it is permitted."""
        self.server.mark_complete(self.connection)
        self.close_connection = True
        denied = self.server.guard.refuses(self.headers, self.command)  # type: ignore[arg-type]
        if denied is not None:
            self._send(error_response(denied.status, denied.error, denied.fix))
            return
        if len(self.path) > ADDRESS or not self.path.startswith("/"):
            self._send(error_response(400, "no such page", "open /"))
            return
        parts = urlsplit(self.path)
        parameters = dict(parse_qsl(parts.query, max_num_fields=20))
        if self.command == "POST":
            self._send(self._act(parts.path, parameters))
            return
        if parts.path == "/" and self.server.guard.is_valid_token(parameters.get("token", "")):
            self._enter(parameters["token"])
        elif not self._is_admitted():
            self._send(self._public_response(parts.path))
        elif parts.path == "/api/events" and self.command == "GET":
            self._stream(parameters)
        else:
            self._send(self._respond(parts.path, parameters))

    def _act(self, path: str, parameters: dict[str, str]) -> Response:
        """Carry out an action. A body is not read."""
        if not path.startswith(ACTIONS):
            return error_response(405, "method POST is not allowed here", "use GET")
        denied = self.server.guard.refuses_action(self.headers)  # type: ignore[arg-type]
        if denied is not None:
            return error_response(denied.status, denied.error, denied.fix)
        try:
            return self.server.answers.act(path.removeprefix(ACTIONS), parameters)
        except Exception:  # noqa: BLE001 - every request gets a response, without a traceback
            self.server.answers.feed.log_failure(path)
            return error_response(500, "internal error while doing this", "see Spark's log of the run")

    def _public_response(self, path: str) -> Response:
        """Return the response for another user of this machine, or another machine's health probe."""
        is_public = self.server.guard.is_local or path in PROBES
        response = self.server.answers.public(path) if is_public else None
        return response or error_response(
            401, "the token is missing or wrong", "open the address that 'millstream run' printed"
        )

    def _is_admitted(self) -> bool:
        """Return whether a request has the token or comes from a process of the user who started the run."""
        guard = self.server.guard
        return guard.has_token(self.headers) or (guard.is_local and is_same_user(self.connection))  # type: ignore[arg-type]

    do_HEAD = do_GET
    do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_TRACE = do_CONNECT = do_GET

    def _respond(self, path: str, parameters: dict[str, str]) -> Response:
        try:
            return self.server.answers.get(path, parameters)
        except Exception:  # noqa: BLE001 - every request gets a response, without a traceback
            self.server.answers.feed.log_failure(path)
            return error_response(
                500, "internal error while building this response", "see Spark's log of the run"
            )

    def _enter(self, token: str) -> None:
        """Store the token in a cookie, and remove it from the address."""
        cookie = f"{self.server.guard.cookie}={token}; HttpOnly; SameSite=Strict; Path=/"
        self._send(
            Response(
                303, b"", "text/plain", {"Location": "/", "Set-Cookie": cookie, "Cache-Control": "no-store"}
            )
        )

    def _send(self, response: Response) -> None:
        self._head(
            response.status, response.kind, {**response.headers, "Content-Length": str(len(response.body))}
        )
        if self.command != "HEAD":
            self.wfile.write(response.body)

    def _head(self, status: int, kind: str, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": kind, **headers, "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()

    def _stream(self, parameters: dict[str, str]) -> None:
        """Send server-sent events until the reader disconnects or the run ends."""
        if not self.server.streams.acquire(blocking=False):
            self._send(error_response(503, "too many pages are open", "close one"))
            return
        try:
            self._head(200, "text/event-stream; charset=utf-8", {"Cache-Control": "no-store"})
            self._send_events(self.headers.get("Last-Event-ID") or parameters.get("after"))
        except OSError:
            # The reader has disconnected or stopped reading.
            pass
        finally:
            self.server.streams.release()

    def _send_events(self, last: str | None) -> None:
        feed = self.server.answers.feed
        place = feed.where(last)
        self.wfile.write(b"retry: 1000\n")
        self._event("hello", {"run": feed.folded.run["id"], "replayed": place is not None})
        place = feed.place if place is None else place
        state_time, state_place = 0.0, -1
        sent_check: dict[str, Any] = {}
        while True:
            entries = feed.after(place, FRESH)
            if entries is None:
                place = feed.place
                self._event("hello", {"run": feed.folded.run["id"], "replayed": False})
                continue
            if entries:
                place = entries[-1].place
                text = "".join(f"id: {entry.id}\nevent: entry\ndata: {entry.data}\n\n" for entry in entries)
                self.wfile.write(text.encode())
            now = time.monotonic()
            if now - state_time >= (FRESH if state_place != place else BEAT) or feed.is_closed:
                state_time, state_place = now, place
                document: dict[str, Any] = {**feed.document()}
                state = {name: value for name, value in document.items() if name not in _STILL}
                # A page that was opened during the start gets what the check found once it is known.
                check = {name: document[name] for name in _CHECK}
                self._event("state", state if check == sent_check else state | check)
                sent_check = check
            if feed.is_closed and place == feed.place:
                self._event("bye", {})
                return

    def _event(self, kind: str, data: Any) -> None:
        self.wfile.write(f"event: {kind}\ndata: {json.dumps(data, default=str)}\n\n".encode())

    def log_message(self, *_: Any) -> None:
        """Log nothing: requests are private."""
