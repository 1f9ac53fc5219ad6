"""How a Kafka client proves who it is and whom it talks to, in the words of both of its libraries."""

from __future__ import annotations

from typing import Literal

from millstream.connectors.source import Problem
from millstream.spec.base import Spec
from millstream.spec.location import Location
from millstream.spec.secret import Secret

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]

_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


class Security(Spec):
    """Encryption and login at a broker."""

    protocol: Protocol = "PLAINTEXT"
    """How the broker's listener speaks; SASL_PLAINTEXT sends passwords in the clear and is for loopback."""
    mechanism: Mechanism = "SCRAM-SHA-512"
    """How the password is proved, with SASL_PLAINTEXT or SASL_SSL."""
    username: Secret | None = None
    """Who logs in, with SASL_PLAINTEXT or SASL_SSL."""
    password: Secret | None = None
    """The login's password, from the environment or a file."""
    ca_file: Location | None = None
    """PEM file of the authorities that may vouch for the broker; the machine's own unless given."""
    client_pem: Location | None = None
    """PEM file with the client's private key and its certificates, for brokers that ask for one."""
    client_pem_password: Secret | None = None
    """The password of the key in `client_pem`."""

    @property
    def login(self) -> bool:
        """Does the listener ask for a user and a password?"""
        return self.protocol.startswith("SASL")

    def problems(self) -> list[Problem]:
        """A login with half its parts, or parts of one that the protocol never asks for."""
        found = []
        if self.login and (self.username is None or self.password is None):
            found.append(
                Problem(
                    "security",
                    f"protocol {self.protocol} needs a username and a password",
                    "add username and password, as ${VARIABLES}",
                )
            )
        if not self.login and (self.username is not None or self.password is not None):
            found.append(
                Problem(
                    "security",
                    f"protocol {self.protocol} asks for no login, and a username or password is given",
                    "set protocol: SASL_SSL",
                )
            )
        if not self.protocol.endswith("SSL") and (self.ca_file or self.client_pem):
            found.append(
                Problem(
                    "security",
                    f"protocol {self.protocol} is not encrypted, and certificates are given",
                    "set protocol: SSL or SASL_SSL",
                )
            )
        return found

    def java(self) -> dict[str, str]:
        """The settings of the client inside Spark, each with `kafka.` before it."""
        made: dict[str, str] = {"kafka.security.protocol": self.protocol}
        if self.login:
            made["kafka.sasl.mechanism"] = self.mechanism
            made["kafka.sasl.jaas.config"] = self._jaas()
        if self.ca_file:
            made["kafka.ssl.truststore.type"] = "PEM"
            made["kafka.ssl.truststore.location"] = str(self.ca_file)
        if self.client_pem:
            made["kafka.ssl.keystore.type"] = "PEM"
            made["kafka.ssl.keystore.location"] = str(self.client_pem)
        if self.client_pem_password:
            made["kafka.ssl.key.password"] = self.client_pem_password.reveal()
        return {} if made == {"kafka.security.protocol": "PLAINTEXT"} else made

    def native(self) -> dict[str, str]:
        """The settings of librdkafka, which asks the broker about topics."""
        made: dict[str, str] = {"security.protocol": self.protocol}
        if self.login:
            made["sasl.mechanism"] = self.mechanism
            made["sasl.username"] = self.username.reveal() if self.username else ""
            made["sasl.password"] = self.password.reveal() if self.password else ""
        if self.ca_file:
            made["ssl.ca.location"] = str(self.ca_file)
        if self.client_pem:
            made["ssl.key.location"] = str(self.client_pem)
            made["ssl.certificate.location"] = str(self.client_pem)
        if self.client_pem_password:
            made["ssl.key.password"] = self.client_pem_password.reveal()
        return made

    def _jaas(self) -> str:
        """The login as Java reads it; a quote or backslash in a password stays a letter of it."""
        user = _quoted(self.username.reveal() if self.username else "")
        word = _quoted(self.password.reveal() if self.password else "")
        return f"{_MODULES[self.mechanism]} required username={user} password={word};"


def _quoted(text: str) -> str:
    """A string of a JAAS configuration, read by java.io.StreamTokenizer: C escapes, and no raw line end."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\r", "\\r") + '"'
