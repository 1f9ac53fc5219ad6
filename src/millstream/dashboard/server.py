"""The HTTP server of the page: reads only, bounded in connections and in patience."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from millstream.dashboard.answers import Answer, wrong
from millstream.dashboard.feed import BEAT, FRESH
from millstream.dashboard.guard import HEADERS

if TYPE_CHECKING:
    from millstream.dashboard.answers import Answers
    from millstream.dashboard.guard import Guard

# A browser holds one stream and asks for some things beside it; a few people may look at once.
CONNECTIONS = 48
STREAMS = 16
# A request comes within so many seconds as a whole: one that drips in byte by byte keeps a thread otherwise.
REQUEST = 10.0
# Longer addresses than any that the page asks for.
ADDRESS = 2_000
# Left out of the states that are streamed: they do not change, or are streamed by themselves.
_STILL = ("findings", "guarantees", "plans", "log")


class Server(ThreadingHTTPServer):
    """Serves the page until `shutdown`."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 32

    def __init__(self, address: tuple[str, int], answers: Answers) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, Handler)
        self.answers = answers
        self.guard: Guard
        self.streams = threading.BoundedSemaphore(STREAMS)
        self._free = threading.BoundedSemaphore(CONNECTIONS)
        self._due: dict[socket.socket, float] = {}

    def process_request(self, request: Any, client_address: Any) -> None:
        """Hand a connection to a thread; beyond the bound it is closed."""
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
        """Answer one connection, then let another one in."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._due.pop(request, None)
            self._free.release()

    def service_actions(self) -> None:
        """Close connections whose request has not come in time."""
        now = time.monotonic()
        for request, due in list(self._due.items()):
            if now > due:
                self._due.pop(request, None)
                with suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)

    def came(self, request: Any) -> None:
        """A request has come as a whole: its answer may take longer."""
        self._due.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A reader that went away is nothing to tell."""


class Handler(BaseHTTPRequestHandler):
    """Answers one request of one connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version = "millstream"
    sys_version = ""
    timeout = REQUEST

    def do_GET(self) -> None:
        """Answer, as far as the one who asks may."""
        self.server.came(self.connection)
        self.close_connection = True
        refused = self.server.guard.refuses(self.headers, self.command)  # type: ignore[arg-type]
        if refused is not None:
            self._send(wrong(refused.status, refused.error, refused.fix))
            return
        if len(self.path) > ADDRESS or not self.path.startswith("/"):
            self._send(wrong(400, "the address is none of the page's", "open /"))
            return
        parts = urlsplit(self.path)
        asked = dict(parse_qsl(parts.query, max_num_fields=20))
        if parts.path == "/" and self.server.guard.fits(asked.get("token", "")):
            self._enter(asked["token"])
        elif not self.server.guard.knows(self.headers):  # type: ignore[arg-type]
            self._send(
                wrong(401, "the token is missing or wrong", "open the address that 'millstream run' printed")
            )
        elif parts.path == "/api/events" and self.command == "GET":
            self._stream(asked)
        else:
            self._send(self._answer(parts.path, asked))

    do_HEAD = do_GET
    do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_TRACE = do_CONNECT = do_GET

    def _answer(self, path: str, asked: dict[str, str]) -> Answer:
        try:
            return self.server.answers.get(path, asked)
        except Exception:  # noqa: BLE001 - whatever is wrong, the one who asks gets an answer, and no trace of us
            self.server.answers.feed.failed(path)
            return wrong(500, "this cannot be told", "see Spark's log of the run")

    def _enter(self, token: str) -> None:
        """Keep the token in a cookie, and take it out of the address."""
        cookie = f"{self.server.guard.cookie}={token}; HttpOnly; SameSite=Strict; Path=/"
        self._send(
            Answer(
                303, b"", "text/plain", {"Location": "/", "Set-Cookie": cookie, "Cache-Control": "no-store"}
            )
        )

    def _send(self, answer: Answer) -> None:
        self._head(answer.status, answer.kind, {**answer.headers, "Content-Length": str(len(answer.body))})
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def _head(self, status: int, kind: str, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": kind, **headers, "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()

    def _stream(self, asked: dict[str, str]) -> None:
        """Server-sent events until the reader goes, or the run ends."""
        if not self.server.streams.acquire(blocking=False):
            self._send(wrong(503, "too many pages are open", "close one"))
            return
        try:
            self._head(200, "text/event-stream; charset=utf-8", {"Cache-Control": "no-store"})
            self._tell(self.headers.get("Last-Event-ID") or asked.get("after"))
        except OSError:
            # The reader has gone, or takes nothing any more.
            pass
        finally:
            self.server.streams.release()

    def _tell(self, last: str | None) -> None:
        feed = self.server.answers.feed
        place = feed.where(last)
        self.wfile.write(b"retry: 1000\n")
        self._event("hello", {"run": feed.folded.run["id"], "replayed": place is not None})
        place = feed.place if place is None else place
        told_at, told_place = 0.0, -1
        while True:
            sent = feed.after(place, FRESH)
            if sent is None:
                place = feed.place
                self._event("hello", {"run": feed.folded.run["id"], "replayed": False})
                continue
            if sent:
                place = sent[-1].place
                text = "".join(f"id: {one.id}\nevent: entry\ndata: {one.data}\n\n" for one in sent)
                self.wfile.write(text.encode())
            now = time.monotonic()
            if now - told_at >= (FRESH if told_place != place else BEAT) or feed.closed:
                told_at, told_place = now, place
                state = {name: value for name, value in feed.document().items() if name not in _STILL}
                self._event("state", state)
            if feed.closed and place == feed.place:
                self._event("bye", {})
                return

    def _event(self, kind: str, data: Any) -> None:
        self.wfile.write(f"event: {kind}\ndata: {json.dumps(data, default=str)}\n\n".encode())

    def log_message(self, *_: Any) -> None:
        """Nothing: who reads the page is nobody's business."""
