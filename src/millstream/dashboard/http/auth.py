"""Check the host, origin and token of a request, and define the headers of every response."""

from __future__ import annotations

import hmac
import ipaddress
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers of every response: no content from other sites, no frames, no guessing of types."""

ACTION_HEADER = "X-Millstream"
"""A header that every action needs."""

_LOCAL = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True)
class DeniedRequest:
    """The reason why a request is denied."""

    status: int
    error: str
    fix: str


@dataclass(frozen=True)
class AccessGuard:
    """The port of the page and its token. `is_local` if the page is reachable only from this machine."""

    port: int
    token: str | None = None
    is_local: bool = False

    @property
    def cookie(self) -> str:
        """The name of the cookie with the token. It has the port, because browsers share cookies across ports."""
        return f"millstream-{self.port}"

    def refuses(self, headers: Mapping[str, str], method: str) -> DeniedRequest | None:
        """Return why a request is denied whatever its path, or None. Does not check the token."""
        if method not in ("GET", "HEAD", "POST"):
            return DeniedRequest(405, f"method {method} is not allowed", "use GET, or POST for an action")
        host = headers.get("Host") or ""
        # DNS rebinding: another site may let its own name point to 127.0.0.1 and send requests as if it were this
        # page. If a token is always required, the attack fails because there is no cookie for that name.
        if (self.token is None or self.is_local) and host not in {f"{name}:{self.port}" for name in _LOCAL}:
            return DeniedRequest(
                403, "the Host header does not match the page", f"open http://127.0.0.1:{self.port}/"
            )
        origin = headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return DeniedRequest(
                403,
                "requests from other sites are denied",
                "send the request from the page, or without an Origin",
            )
        site, mode = headers.get("Sec-Fetch-Site"), headers.get("Sec-Fetch-Mode")
        if site in ("cross-site", "same-site") and mode != "navigate":
            return DeniedRequest(403, "requests from other sites are denied", "open the page itself")
        return None

    def refuses_action(self, headers: Mapping[str, str]) -> DeniedRequest | None:
        """Return why a request to change something is denied, or None. Even the run's own user needs the token.

        A browser adds `Origin` to each POST, and does not send our header to another site without asking it first.
        """
        if not self.has_token(headers):
            return DeniedRequest(
                401, "an action requires the token", "open the address that 'millstream run' printed"
            )
        if headers.get(ACTION_HEADER) != "1":
            return DeniedRequest(403, f"an action requires the header {ACTION_HEADER}: 1", "send the header")
        is_program = (headers.get("Authorization") or "").lower().startswith("bearer ")
        if not is_program and headers.get("Origin") is None:
            return DeniedRequest(403, "an action from a browser requires an Origin", "use the page itself")
        return None

    def has_token(self, headers: Mapping[str, str]) -> bool:
        """Return whether a request has the token or needs none."""
        if self.token is None:
            return True
        kind, _, value = (headers.get("Authorization") or "").partition(" ")
        if kind.lower() == "bearer" and self.is_valid_token(value.strip()):
            return True
        try:
            cookies = SimpleCookie(headers.get("Cookie") or "")
        except CookieError:
            return False
        return self.cookie in cookies and self.is_valid_token(cookies[self.cookie].value)

    def is_valid_token(self, token: str) -> bool:
        """Return whether this is the token, in constant time."""
        return self.token is not None and hmac.compare_digest(token.encode(), self.token.encode())


def is_local(host: str) -> bool:
    """Return whether an address is reachable only from this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
