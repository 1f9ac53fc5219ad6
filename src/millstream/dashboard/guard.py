"""Who may ask: the names a request may come under, the token, and the headers of every answer."""

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
"""What every answer says to a browser: nothing from elsewhere, in no frame, no guessing of types."""

_LOCAL = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True)
class Refused:
    """Why a request is not answered."""

    status: int
    error: str
    fix: str


@dataclass(frozen=True)
class Guard:
    """The port of the page and, where it is reached from elsewhere, the token that it asks for."""

    port: int
    token: str | None = None

    @property
    def cookie(self) -> str:
        """The name of the cookie with the token; browsers do not tell ports apart."""
        return f"millstream-{self.port}"

    def refuses(self, headers: Mapping[str, str], method: str) -> Refused | None:
        """Why a request may not be answered whatever it asks for; None where it may, as far as its token goes."""
        if method not in ("GET", "HEAD"):
            return Refused(405, f"{method} is not answered", "the page only reads; use GET")
        host = headers.get("Host") or ""
        # A page elsewhere may let its own name point to 127.0.0.1 and ask as if it were this one (DNS rebinding).
        # With a token that does not help it: it has no cookie for that name.
        if self.token is None and host not in {f"{name}:{self.port}" for name in _LOCAL}:
            return Refused(403, "this name is not the page's", f"open http://127.0.0.1:{self.port}/")
        origin = headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return Refused(403, "another site may not ask", "ask from the page, or without an Origin")
        site, mode = headers.get("Sec-Fetch-Site"), headers.get("Sec-Fetch-Mode")
        if site in ("cross-site", "same-site") and mode != "navigate":
            return Refused(403, "another site may not ask", "open the page itself")
        return None

    def knows(self, headers: Mapping[str, str]) -> bool:
        """Does a request have the token, or needs none?"""
        if self.token is None:
            return True
        kind, _, given = (headers.get("Authorization") or "").partition(" ")
        if kind.lower() == "bearer" and self.fits(given.strip()):
            return True
        try:
            cookies = SimpleCookie(headers.get("Cookie") or "")
        except CookieError:
            return False
        return self.cookie in cookies and self.fits(cookies[self.cookie].value)

    def fits(self, given: str) -> bool:
        """Is that the token? Takes as long for a wrong one as for another."""
        return self.token is not None and hmac.compare_digest(given.encode(), self.token.encode())


def is_local(host: str) -> bool:
    """Does an address reach this machine alone?"""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
