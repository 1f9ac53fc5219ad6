"""A TCP proxy that holds one HTTP request, as the network or a suspended client would, until it is released."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import re

_MOST = 65536


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
                threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            address = (self._server.hostname, self._server.port or 80)
            with socket.create_connection(address) as server:
                answers = threading.Thread(target=self._forward_answers, args=(server, client), daemon=True)
                answers.start()
                self._forward_requests(client, server)
                answers.join()

    def _forward_requests(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(_MOST):
                if not self._is_held.is_set() and self._pattern.match(data):
                    self._is_held.set()
                    self._is_released.wait()
                server.sendall(data)
        with suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def _forward_answers(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(_MOST):
                client.sendall(data)
        with suppress(OSError):
            client.shutdown(socket.SHUT_WR)
