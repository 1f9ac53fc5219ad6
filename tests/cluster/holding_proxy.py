"""A TCP proxy that holds one HTTP request, as the network or a suspended client would, until it is released."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import re


class HoldingProxy:
    """Forwards connections to `server`. The first request whose first line matches `held` waits for `release`."""

    def __init__(self, server: str, held: re.Pattern[bytes]) -> None:
        self._server, self._pattern = urlsplit(server), held
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._is_held, self._is_released = threading.Event(), threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        """The URL under which clients reach the server."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def is_holding(self) -> bool:
        """Return whether the request has come."""
        return self._is_held.is_set()

    def release(self) -> None:
        """Forward the request."""
        self._is_released.set()

    def close(self) -> None:
        """Accept no more connections."""
        self.release()
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection((self._server.hostname, self._server.port or 80))
                for source, target, is_request in ((client, server, True), (server, client, False)):
                    threading.Thread(
                        target=self._forward, args=(source, target, is_request), daemon=True
                    ).start()

    def _forward(self, source: socket.socket, target: socket.socket, is_request: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if is_request and not self._is_held.is_set() and self._pattern.match(data):
                    self._is_held.set()
                    self._is_released.wait()
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)
