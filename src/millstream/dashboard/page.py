"""The page of a run: its state, its log and its server, opened and closed together."""

from __future__ import annotations

import errno
import secrets
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.dashboard.answers import STATIC, Answers
from millstream.dashboard.guard import Guard, is_local
from millstream.dashboard.server import Server
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.dashboard.answers import Looks
    from millstream.dashboard.feed import Feed

PORT = 4711
"""Where the page is looked for first."""
# So many ports behind it are tried when it is taken: by other runs.
NEXT = 20
LOCAL = "127.0.0.1"
# How often the server looks whether it is to end, and whose request is overdue, in seconds.
LOOK = 0.1


@dataclass
class Page:
    """A server in a thread of its own, and where it is."""

    server: Server
    address: str

    def close(self) -> None:
        """Answer nobody any more; returns when the server's thread has ended."""
        self.server.shutdown()
        self.server.server_close()


def serve(
    feed: Feed, looks: Looks, *, host: str = LOCAL, port: int | None = None, static: Path = STATIC
) -> Page:
    """Serve a feed; without a port at `PORT` or the next free one, with 0 at any.

    Raises `NotReady` for an address that cannot be had.
    """
    answers = Answers(feed, looks, static)
    server = _bound(host, [PORT + more for more in range(NEXT)] if port is None else [port], answers)
    taken = server.server_address[1]
    token = None if is_local(host) else secrets.token_urlsafe(24)
    server.guard = Guard(taken, token)
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": LOOK}, name="millstream-http", daemon=True
    ).start()
    shown = f"[{host}]" if ":" in host else host
    return Page(server, f"http://{shown}:{taken}/" + (f"?token={token}" if token else ""))


def _bound(host: str, ports: list[int], answers: Answers) -> Server:
    refused: OSError | None = None
    for port in ports:
        try:
            return Server((host, port), answers)
        except OSError as taken:
            refused = taken
            if taken.errno != errno.EADDRINUSE:
                break
    assert refused is not None
    said = f"port {ports[0]}" if len(ports) == 1 else f"none of the ports {ports[0]} to {ports[-1]}"
    raise NotReady(
        f"the live page cannot have {said} at {host}: {refused.strerror}",
        "name another with --port, or run without the page: --no-page",
    ) from refused
