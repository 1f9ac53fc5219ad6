"""Kafka client options: those that are passed to the client, and those that are refused."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.connectors.api.values.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Options = dict[str, str | int | float | bool]
"""Options by name, as in the spec."""

LEDGER_TOPIC = "_millstream_ledger"
"""Default topic of the batch ledger of transactional sinks."""
READER = {
    # Kafka's default also reads records of aborted transactions.
    "kafka.isolation.level": "read_committed",
    # After each poll, Spark asks the broker for the partition's end. By then, Kafka's client has requested the next
    # records, and the broker responds in order. At the end of a partition, Spark therefore waits for records that do
    # not come: by Kafka's default, half a second for each partition of each batch. Larger polls request less often.
    "kafka.fetch.max.wait.ms": "10",
    "kafka.max.poll.records": "5000",
}
"""Default options of a source."""
BESIDE = (
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "kafkaConsumer.pollTimeoutMs",
    "maxRecordsPerPartition",
    "startingOffsetsByTimestampStrategy",
)
"""Reader options of Spark that are allowed in addition to client options."""
SOURCE_FIELDS = {
    "kafka.bootstrap.servers": "bootstrap_servers",
    "subscribe": "subscribe",
    "subscribepattern": "subscribe_pattern",
    "assign": "assign",
    "startingoffsets": "starting_offsets",
    "startingtimestamp": "starting_timestamp",
    "maxoffsetspertrigger": "max_offsets_per_trigger",
    "minoffsetspertrigger": "min_offsets_per_trigger",
    "maxtriggerdelay": "max_trigger_delay",
    "minpartitions": "min_partitions",
    "failondataloss": "fail_on_data_loss",
    "kafka.group.id": "group_id",
    "groupidprefix": "group_id_prefix",
    "includeheaders": "include_headers",
    "kafka.security.protocol": "security: {protocol: …}",
    "kafka.sasl.mechanism": "security: {mechanism: …}",
    "kafka.sasl.jaas.config": "security: {username: …, password: …}",
}
"""Source fields that set the same as an option, by the option in lower case."""
SINK_FIELDS = {
    "kafka.bootstrap.servers": "bootstrap_servers",
    "topic": "topic",
    "includeheaders": "headers",
    "kafka.security.protocol": "security: {protocol: …}",
    "kafka.sasl.mechanism": "security: {mechanism: …}",
    "kafka.sasl.jaas.config": "security: {username: …, password: …}",
}
"""Sink fields that set the same as an option, by the option in lower case."""
PRODUCER_OPTIONS = {
    "kafka.client.id": "client.id",
    "kafka.compression.type": "compression.type",
    "kafka.linger.ms": "linger.ms",
    "kafka.batch.size": "batch.size",
    "kafka.max.request.size": "message.max.bytes",
    "kafka.request.timeout.ms": "request.timeout.ms",
    "kafka.transaction.timeout.ms": "transaction.timeout.ms",
}
"""Options of the Java producer that librdkafka also has, with its names for them."""
# Spark's Kafka source and sink set these themselves and fail if they are given.
_SET_BY_SPARK = {
    "kafka.auto.offset.reset": "use starting_offsets",
    "kafka.enable.auto.commit": "remove it; Spark stores the offsets in the checkpoint",
    "kafka.interceptor.classes": "remove it; Spark supports no interceptors",
    "kafka.key.deserializer": "remove it; keys arrive as bytes",
    "kafka.value.deserializer": "remove it; values arrive as bytes and 'format' decodes them",
    "kafka.key.serializer": "remove it; keys are written as bytes",
    "kafka.value.serializer": "remove it; values are written as bytes",
    "kafka.transactional.id": "remove it; Spark's Kafka writer commits no transactions",
}
# Each names a class, a file or an address that the client would load, so that anyone who edits a spec could attack
# the host (CVE-2023-25194, CVE-2025-27817).
_LOADS_CODE = re.compile(
    r"\.class(es)?$|\.class\.name$|\.factory$|interceptor|config\.providers|security\.providers|metric\.reporters"
    r"|sasl\.jaas\.config|sasl\.oauthbearer\.(token\.endpoint|jwks\.endpoint)|sasl\.login\.callback"
)
_PASSWORD = re.compile(r"password|secret|keystore\.key|\.pem$")
_PREFIX = "kafka."


def to_strings(options: Mapping[str, str | int | float | bool]) -> dict[str, str]:
    """Convert option values to strings for Spark, with `true` and `false` for booleans."""
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items()
    }


def problems(
    options: Mapping[str, object], fields: Mapping[str, str], beside: Iterable[str] = ()
) -> list[Problem]:
    """Return a problem for each option that is not allowed.

    `fields` maps an option in lower case to the spec field to use instead. `beside` contains Spark options (without
    `kafka.`) that are allowed.
    """
    return [
        problem
        for key, value in options.items()
        if (problem := _check_option(key, value, fields, set(beside)))
    ]


def _check_option(key: str, value: object, fields: Mapping[str, str], beside: set[str]) -> Problem | None:
    lower_key = key.lower()
    if lower_key in fields:
        return Problem("options", f"option '{key}' has its own setting", f"write it as {fields[lower_key]}")
    if not lower_key.startswith(_PREFIX):
        if key in beside:
            return None
        return Problem(
            "options",
            f"option '{key}' is not an option of a Kafka client",
            f"client options begin with 'kafka.': 'kafka.{key}'",
        )
    if lower_key in _SET_BY_SPARK:
        return Problem("options", f"Spark refuses the option '{key}'", _SET_BY_SPARK[lower_key])
    if _PASSWORD.search(lower_key):
        return Problem(
            "options",
            f"option '{key}' would put a secret in plain text into the spec",
            "use security: username and password, or client_pem and client_pem_password",
        )
    if _LOADS_CODE.search(lower_key):
        return Problem(
            "options",
            f"option '{key}' is not allowed",
            "remove this option; set the login with security: username and password",
            "with this option the client loads a class or opens an address, which a spec must not cause",
        )
    if lower_key == "kafka.ssl.endpoint.identification.algorithm" and not str(value).strip():
        return Problem(
            "options",
            f"option '{key}' is empty",
            "remove this option, and install a certificate for the broker's host name",
            "if it is empty, the client accepts a certificate for any host name",
        )
    return None


def weakening_problems(options: Mapping[str, object]) -> list[Problem]:
    """Find options of a producer that can lose or duplicate records."""
    problems = []
    for key, value in options.items():
        name, setting = key.lower(), str(value).lower()
        if name == "kafka.acks" and setting in ("0", "1"):
            acknowledged_by = "no broker" if setting == "0" else "only one broker"
            problems.append(
                Problem(
                    "options",
                    f"with {key}={setting}, the batch is committed when {acknowledged_by} has acknowledged "
                    f"its records",
                    f"remove {key}; all in-sync replicas then acknowledge a record",
                    "if the broker fails, records are lost, although the checkpoint counts them as written",
                    key,
                )
            )
        if name == "kafka.enable.idempotence" and setting == "false":
            problems.append(
                Problem(
                    "options",
                    f"with {key}=false the client duplicates and reorders records when it retries",
                    f"remove {key}",
                    key=key,
                )
            )
    return problems


def pattern_problems(pattern: str | None) -> list[Problem]:
    """Check a pattern of topics, which both Spark and Millstream compare with the names of topics."""
    try:
        re.compile(pattern or "")
    except re.error as error:
        return [
            Problem(
                "subscribe_pattern",
                f"subscribe_pattern '{pattern}' is not a regular expression: {error}",
                "write a pattern that Java and Python both understand, such as '.*-orders' for all names that end "
                "with -orders",
            )
        ]
    return []
