"""TCP proxies before an HTTP server, which do to a request or its response what a network does now and then."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import re

_MOST = 65536


class _Connection:
    """One connection of a client, and that to the server which belongs to it."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client, self.server = client, server
        self.loses_response = False


class _Proxy:
    """Forwards connections to `server`."""

    def __init__(self, server: str) -> None:
        self._server = urlsplit(server)
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        """The URL under which clients reach the server."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        """Accept no more connections."""
        self._listener.close()

    def _meet_request(self, connection: _Connection, data: bytes) -> None:
        """Do what the proxy is for before data of a client is forwarded."""

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            address = (self._server.hostname, self._server.port or 80)
            with socket.create_connection(address) as server:
                connection = _Connection(client, server)
                answers = threading.Thread(target=self._forward_answers, args=(connection,), daemon=True)
                answers.start()
                self._forward_requests(connection)
                answers.join()

    def _forward_requests(self, connection: _Connection) -> None:
        with suppress(OSError):
            while data := connection.client.recv(_MOST):
                self._meet_request(connection, data)
                connection.server.sendall(data)
        with suppress(OSError):
            connection.server.shutdown(socket.SHUT_WR)

    def _forward_answers(self, connection: _Connection) -> None:
        with suppress(OSError):
            while data := connection.server.recv(_MOST):
                # The server first asks for the content of a request that announces it.
                if connection.loses_response and not data.startswith(b"HTTP/1.1 100"):
                    break
                connection.client.sendall(data)
        # Also wakes the thread that waits for the client's next request.
        with suppress(OSError):
            connection.client.shutdown(socket.SHUT_RDWR if connection.loses_response else socket.SHUT_WR)


class HoldingProxy(_Proxy):
    """Lets the first request whose first line matches `held` wait for `release`."""

    def __init__(self, server: str, held: re.Pattern[bytes]) -> None:
        self._pattern = held
        self._is_held, self._is_released = threading.Event(), threading.Event()
        super().__init__(server)

    def is_holding(self) -> bool:
        """Return whether the request has come."""
        return self._is_held.is_set()

    def release(self) -> None:
        """Forward the request."""
        self._is_released.set()

    def close(self) -> None:
        """Forward the request, and accept no more connections."""
        self.release()
        super().close()

    def _meet_request(self, connection: _Connection, data: bytes) -> None:  # noqa: ARG002 - as its base has it
        if not self._is_held.is_set() and self._pattern.match(data):
            self._is_held.set()
            self._is_released.wait()


class LosingProxy(_Proxy):
    """Cuts the connection in place of the response to the first request for each name that matches `lost`."""

    def __init__(self, server: str, lost: re.Pattern[bytes]) -> None:
        self._pattern = lost
        self.lost: list[str] = []
        super().__init__(server)

    def _meet_request(self, connection: _Connection, data: bytes) -> None:
        if (match := self._pattern.match(data)) and match[0].decode() not in self.lost:
            self.lost.append(match[0].decode())
            connection.loses_response = True
