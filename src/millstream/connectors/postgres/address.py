"""Reads the address of a database; parameters that would read files or lead elsewhere are refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

from millstream.diagnostics.failure import MillstreamError
from millstream.spec.secret import Secret, SecretUrl

# What libpq understands and a spec may say. Left out on purpose: service, passfile, options, host and
# hostaddr, which would read other files, set server variables or lead elsewhere than the address shows.
ALLOWED = frozenset(
    {
        "sslmode",
        "sslrootcert",
        "sslcert",
        "sslkey",
        "connect_timeout",
        "application_name",
        "target_session_attrs",
    }
)
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_SCHEMES = ("postgresql", "postgres")
_SHAPE = "write it as postgresql://user:password@host:5432/database"


class BadAddress(MillstreamError):
    """The text is not the address of a Postgres database; `what` never repeats it, a password included."""


@dataclass(frozen=True)
class Address:
    """Where to connect and as whom."""

    host: str
    port: int
    database: str
    user: str | None = None
    password: Secret | None = None
    parameters: dict[str, str] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """Host, port and database, for messages."""
        return f"{self.host}:{self.port}/{self.database}"

    def arguments(self) -> dict[str, str | int]:
        """Keyword arguments of `psycopg.connect`.

        Off this machine the server's certificate is verified unless the address says otherwise.
        """
        given: dict[str, str | int] = {"connect_timeout": "10", **self.parameters}
        if self.host not in _LOOPBACK and "sslmode" not in given:
            given |= {
                "sslmode": "verify-full",
                **({} if "sslrootcert" in given else {"sslrootcert": "system"}),
            }
        if self.user is not None:
            given["user"] = self.user
        if self.password is not None:
            given["password"] = self.password.reveal()
        return {**given, "host": self.host, "port": self.port, "dbname": self.database}


def read_address(url: SecretUrl, user: str | None = None, password: Secret | None = None) -> Address:
    """Read an address; `user` and `password` count over the url's own. Raises `BadAddress`."""
    text = url.reveal().strip()
    if text.startswith("jdbc:"):
        raise BadAddress(
            "the url is a JDBC address", "leave out 'jdbc:' and put user and password before the host"
        )
    try:
        split = urlsplit(text)
        port = split.port or 5432
    except ValueError:
        raise BadAddress("the url is not an address", _SHAPE) from None
    if split.scheme not in _SCHEMES:
        raise BadAddress("the url does not begin with postgresql://", _SHAPE)
    host, database = split.hostname, unquote(split.path.removeprefix("/"))
    if not host or not database or "/" in unquote(host) or "," in split.netloc.rpartition("@")[2]:
        raise BadAddress("the url does not name one host and one database", _SHAPE)
    if split.fragment or any(ord(letter) < 32 for letter in unquote(text)):
        raise BadAddress(
            "the url has characters that do not belong into an address", "write %23 for # in a password"
        )
    parameters: dict[str, str] = {}
    for name, value in parse_qsl(split.query, keep_blank_values=True):
        if name not in ALLOWED:
            raise BadAddress(
                f"the url's parameter '{name}' is not allowed", f"use {', '.join(sorted(ALLOWED))}"
            )
        parameters[name] = value
    return Address(
        host=host,
        port=port,
        database=database,
        user=user or (unquote(split.username) if split.username else None),
        password=password or (Secret(unquote(split.password)) if split.password else None),
        parameters=parameters,
    )
