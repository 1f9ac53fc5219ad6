"""Options of Kafka clients that are passed through, and those that are not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.connectors.source import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Options = dict[str, str | int | float | bool]
"""Options by name, as a spec gives them."""

READER = {
    # Kafka's own default hands out records of transactions that were aborted.
    "kafka.isolation.level": "read_committed",
    # After each poll Spark asks the broker for the ends of the partition, and by then Kafka's client has asked for
    # the next records. The broker answers in turn: at the end of a partition Spark waits for records that do not
    # come, half a second for each partition of each batch by Kafka's own default. Larger polls ask less often.
    "kafka.fetch.max.wait.ms": "10",
    "kafka.max.poll.records": "5000",
}
"""What a source is set to unless its options say otherwise."""
# Spark's Kafka source and sink set these themselves and refuse to start when they are given.
_SPARKS_OWN = {
    "kafka.auto.offset.reset": "say where to start with starting_offsets",
    "kafka.enable.auto.commit": "leave it out; Spark keeps the offsets in the checkpoint",
    "kafka.interceptor.classes": "leave it out; Spark takes no interceptors",
    "kafka.key.deserializer": "leave it out; keys arrive as bytes",
    "kafka.value.deserializer": "leave it out; values arrive as bytes and 'format' decodes them",
    "kafka.key.serializer": "leave it out; keys are written as bytes",
    "kafka.value.serializer": "leave it out; values are written as bytes",
    "kafka.transactional.id": "leave it out; Spark's Kafka writer commits no transactions",
}
# Each names a class, a file or an address that the client would load by itself: a way in for whoever
# can edit a spec (CVE-2023-25194, CVE-2025-27817).
_LOADS = re.compile(
    r"\.class(es)?$|\.class\.name$|\.factory$|interceptor|config\.providers|security\.providers|metric\.reporters"
    r"|sasl\.jaas\.config|sasl\.oauthbearer\.(token\.endpoint|jwks\.endpoint)|sasl\.login\.callback"
)
_PASSWORD = re.compile(r"password|secret|keystore\.key|\.pem$")
_PREFIX = "kafka."


def text(options: Mapping[str, str | int | float | bool]) -> dict[str, str]:
    """The options as Spark takes them: every value a text, truth as `true` and `false`."""
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items()
    }


def problems(
    options: Mapping[str, object], fields: Mapping[str, str], beside: Iterable[str] = ()
) -> list[Problem]:
    """What is wrong with the options given.

    `fields` tells the field of ours that stands for an option, in lower case; `beside` are Spark's options
    (without `kafka.`) that may be given.
    """
    return [found for key, value in options.items() if (found := _judge(key, value, fields, set(beside)))]


def _judge(key: str, value: object, fields: Mapping[str, str], beside: set[str]) -> Problem | None:
    low = key.lower()
    if low in fields:
        return Problem("options", f"option '{key}' has a field of its own", f"write it as {fields[low]}")
    if not low.startswith(_PREFIX):
        if key in beside:
            return None
        return Problem(
            "options",
            f"option '{key}' is not an option of a Kafka client",
            f"options of the client begin with 'kafka.': 'kafka.{key}'",
        )
    if low in _SPARKS_OWN:
        return Problem("options", f"Spark refuses the option '{key}'", _SPARKS_OWN[low])
    if _PASSWORD.search(low):
        return Problem(
            "options",
            f"option '{key}' would show a secret wherever the spec is shown",
            "use security: username and password, or client_pem and client_pem_password",
        )
    if _LOADS.search(low):
        return Problem(
            "options",
            f"option '{key}' is not passed through",
            "leave it out; logins are made from security: username and password",
            "it makes the client load a class or fetch an address, which a spec may not ask for",
        )
    if low == "kafka.ssl.endpoint.identification.algorithm" and not str(value).strip():
        return Problem(
            "options",
            f"option '{key}' is blank",
            "leave it out, and give the broker a certificate for its name",
            "without it any certificate passes for the broker's",
        )
    return None
