"""Parse a database address; parameters that read files or redirect the connection are refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

from millstream.diagnostics.failure import MillstreamError
from millstream.spec.secrets.secret import Secret, SecretUrl

# Parameters of libpq that a spec may set. Excluded on purpose: service, passfile, options, host and hostaddr, which
# would read other files, set server variables or connect elsewhere than the address shows.
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
    """Not the address of a Postgres database; `what` never repeats the text, because it may contain a password."""


@dataclass(frozen=True)
class Address:
    """Address of a database and login."""

    host: str
    port: int
    database: str
    user: str | None = None
    password: Secret | None = None
    parameters: dict[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Host, port and database, for messages."""
        return f"{self.host}:{self.port}/{self.database}"

    def arguments(self) -> dict[str, str | int]:
        """Return keyword arguments of `psycopg.connect`.

        For other machines the server's certificate is verified unless the address sets otherwise.
        """
        arguments: dict[str, str | int] = {"connect_timeout": "10", **self.parameters}
        if self.host not in _LOOPBACK and "sslmode" not in arguments:
            arguments |= {
                "sslmode": "verify-full",
                **({} if "sslrootcert" in arguments else {"sslrootcert": "system"}),
            }
        if self.user is not None:
            arguments["user"] = self.user
        if self.password is not None:
            arguments["password"] = self.password.reveal()
        return {**arguments, "host": self.host, "port": self.port, "dbname": self.database}


def read_address(url: SecretUrl, user: str | None = None, password: Secret | None = None) -> Address:
    """Parse an address; `user` and `password` take precedence over those in the url. Raises `BadAddress`."""
    text = url.reveal().strip()
    if text.startswith("jdbc:"):
        raise BadAddress(
            "the url is a JDBC address",
            "remove 'jdbc:' and put user and password before the host",
        )
    try:
        parts = urlsplit(text)
        port = parts.port or 5432
    except ValueError:
        raise BadAddress("the url is not an address", _SHAPE) from None
    if parts.scheme not in _SCHEMES:
        raise BadAddress("the url does not begin with postgresql://", _SHAPE)
    host, database = parts.hostname, unquote(parts.path.removeprefix("/"))
    if not host or not database or "/" in unquote(host) or "," in parts.netloc.rpartition("@")[2]:
        raise BadAddress("the url must contain one host and one database", _SHAPE)
    if parts.fragment or any(ord(character) < 32 for character in unquote(text)):
        raise BadAddress(
            "the url contains characters that are not valid in an address",
            "write %23 for # in a password",
        )
    parameters: dict[str, str] = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in ALLOWED:
            # An invalid name may be the rest of a password that contains an unescaped `?`.
            parameter = f"the url's parameter '{name}'" if name.isidentifier() else "a parameter of the url"
            raise BadAddress(f"{parameter} is not allowed", f"use {', '.join(sorted(ALLOWED))}")
        parameters[name] = value
    return Address(
        host=host,
        port=port,
        database=database,
        user=user or (unquote(parts.username) if parts.username else None),
        password=password or (Secret(unquote(parts.password)) if parts.password else None),
        parameters=parameters,
    )
