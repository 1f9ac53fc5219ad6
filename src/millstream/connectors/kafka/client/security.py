"""Login and encryption settings of a Kafka client, for the Java client and for librdkafka."""

from __future__ import annotations

from typing import Literal

from millstream.connectors.api.values.problem import Problem
from millstream.spec.base import Spec
from millstream.spec.location import Location
from millstream.spec.secrets.secret import Secret

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]

_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


class Security(Spec):
    """Encryption and authentication."""

    protocol: Protocol = "PLAINTEXT"
    """Protocol of the broker's listener. SASL_PLAINTEXT sends passwords unencrypted and is for loopback only."""
    mechanism: Mechanism = "SCRAM-SHA-512"
    """SASL mechanism, with SASL_PLAINTEXT or SASL_SSL."""
    username: Secret | None = None
    """Username, with SASL_PLAINTEXT or SASL_SSL."""
    password: Secret | None = None
    """Password of the login, from the environment or a file."""
    ca_file: Location | None = None
    """PEM file of the certificate authorities that are trusted for the broker. Default: those of the system."""
    client_pem: Location | None = None
    """PEM file with the client's private key and certificates, for brokers that require them."""
    client_pem_password: Secret | None = None
    """Password of the key in `client_pem`."""

    @property
    def login(self) -> bool:
        """Whether the listener requires username and password."""
        return self.protocol.startswith("SASL")

    def problems(self) -> list[Problem]:
        """Check for an incomplete login, and for settings that the protocol does not use."""
        problems = []
        if self.login and (self.username is None or self.password is None):
            problems.append(
                Problem(
                    "security",
                    f"protocol {self.protocol} needs a username and a password",
                    "add username and password, as ${VARIABLES}",
                )
            )
        if not self.login and (self.username is not None or self.password is not None):
            problems.append(
                Problem(
                    "security",
                    f"protocol {self.protocol} uses no login, but a username or password is set",
                    "set protocol: SASL_SSL",
                )
            )
        if not self.protocol.endswith("SSL") and (self.ca_file or self.client_pem):
            problems.append(
                Problem(
                    "security",
                    f"protocol {self.protocol} is not encrypted, but certificates are set",
                    "set protocol: SSL or SASL_SSL",
                )
            )
        return problems

    def java(self) -> dict[str, str]:
        """Return the settings of Spark's Kafka client, with the prefix `kafka.`."""
        settings: dict[str, str] = {"kafka.security.protocol": self.protocol}
        if self.login:
            settings["kafka.sasl.mechanism"] = self.mechanism
            settings["kafka.sasl.jaas.config"] = self._jaas()
        if self.ca_file:
            settings["kafka.ssl.truststore.type"] = "PEM"
            settings["kafka.ssl.truststore.location"] = str(self.ca_file)
        if self.client_pem:
            settings["kafka.ssl.keystore.type"] = "PEM"
            settings["kafka.ssl.keystore.location"] = str(self.client_pem)
        if self.client_pem_password:
            settings["kafka.ssl.key.password"] = self.client_pem_password.reveal()
        return {} if settings == {"kafka.security.protocol": "PLAINTEXT"} else settings

    def native(self) -> dict[str, str]:
        """Return the settings of librdkafka, which queries the broker about topics."""
        settings: dict[str, str] = {"security.protocol": self.protocol}
        if self.login:
            settings["sasl.mechanism"] = self.mechanism
            settings["sasl.username"] = self.username.reveal() if self.username else ""
            settings["sasl.password"] = self.password.reveal() if self.password else ""
        if self.ca_file:
            settings["ssl.ca.location"] = str(self.ca_file)
        if self.client_pem:
            settings["ssl.key.location"] = str(self.client_pem)
            settings["ssl.certificate.location"] = str(self.client_pem)
        if self.client_pem_password:
            settings["ssl.key.password"] = self.client_pem_password.reveal()
        return settings

    def _jaas(self) -> str:
        """Return the login as a JAAS configuration; quotes and backslashes in a password are escaped."""
        username = _quoted(self.username.reveal() if self.username else "")
        password = _quoted(self.password.reveal() if self.password else "")
        return f"{_MODULES[self.mechanism]} required username={username} password={password};"


def _quoted(text: str) -> str:
    """Quote a JAAS string, read by java.io.StreamTokenizer: C escapes and no line break."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\r", "\\r") + '"'
