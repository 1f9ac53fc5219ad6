"""Start and stop the HTTP server of a run's live page."""

from __future__ import annotations

import errno
import secrets
import socket
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from millstream.dashboard.http.auth import AccessGuard, is_local
from millstream.dashboard.http.routes import STATIC, Routes
from millstream.dashboard.http.server import Server
from millstream.diagnostics.failure import NotReady
from millstream.engine.background_threads import BackgroundThread

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.dashboard.http.event_stream import EventStream
    from millstream.dashboard.http.routes import PreviewReader

PORT = 4711
"""The default port of the live page."""
# Number of ports to try from there, because other runs may use the first ones.
NEXT = 20
LOCAL = "127.0.0.1"
# Seconds between two checks of the server whether it must stop and which requests are overdue.
LOOK = 0.1


@dataclass
class Page:
    """A server that runs in its own thread, and its address."""

    server: Server
    address: str
    """The address with the token, which the browser then stores in a cookie."""
    origin: str
    """The address without the token, with a trailing slash."""

    def close(self) -> None:
        """Stop serving; returns when the server's thread has ended."""
        self.server.shutdown()
        self.server.server_close()


def serve(
    feed: EventStream,
    looks: PreviewReader,
    *,
    host: str = LOCAL,
    port: int | None = None,
    static: Path = STATIC,
) -> Page:
    """Serve a feed at a port: by default `PORT` or the next free one; 0 means any free port.

    Raises `NotReady` if the address is not available.
    """
    answers = Routes(feed, looks, static)
    server = _bound(host, [PORT + offset for offset in range(NEXT)] if port is None else [port], answers)
    bound_port = server.server_address[1]
    token = secrets.token_urlsafe(24)
    server.guard = AccessGuard(bound_port, token, is_local(host))
    BackgroundThread("millstream-http", partial(server.serve_forever, LOOK)).start()
    url_host = f"[{host}]" if ":" in host else host
    origin = f"http://{url_host}:{bound_port}/"
    return Page(server, f"{origin}?token={token}", origin)


def refuse_taken_port(host: str, port: int) -> None:
    """Raise `NotReady` if another program listens at this port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as attempt:
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind((host, port))
        except OSError as error:
            raise _not_available(host, f"port {port}", error) from error


def _bound(host: str, ports: list[int], answers: Routes) -> Server:
    last_error: OSError | None = None
    for port in ports:
        try:
            return Server((host, port), answers)
        except OSError as error:
            last_error = error
            if error.errno != errno.EADDRINUSE:
                break
    assert last_error is not None
    ports_text = f"port {ports[0]}" if len(ports) == 1 else f"none of the ports {ports[0]} to {ports[-1]}"
    raise _not_available(host, ports_text, last_error) from last_error


def _not_available(host: str, ports: str, error: OSError) -> NotReady:
    return NotReady(
        f"the live page cannot use {ports} at {host}: {error.strerror}",
        "choose another with --port, or run without the page: --no-page",
    )
