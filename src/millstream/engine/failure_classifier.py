"""Classify the failure of a query: an outage, which passes, or a defect, which does not."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from millstream.checkpoint.integrity.damage_report import COPY
from millstream.connectors import registry
from millstream.diagnostics.failure import (
    CheckpointError,
    CheckpointMismatch,
    MillstreamError,
    NotReady,
    Outage,
)
from millstream.spec.secrets.secret import redact


class FailureKind(StrEnum):
    """The kind of a failure. It decides whether the query starts again."""

    OUTAGE = "outage"
    """A server or service cannot be reached. The query starts again after a wait."""
    DEFECT = "defect"
    """A defect in the spec, the user's code or a record. The query would fail again in the same way."""
    CRASH = "crash"
    """A process that works for the query died. The query starts again, and gives up if one batch often kills it."""
    FENCED = "fenced"
    """Another run has taken over this query. A new start would compete with that run."""
    CHECKPOINT = "checkpoint"
    """The checkpoint is damaged, or does not match its sources or sinks. A person must decide."""
    GONE = "gone"
    """Records that the checkpoint continues from are no longer in the source."""

    @property
    def exit_code(self) -> int:
        """The exit code of a run that ends with this failure: 3 if a checkpoint cannot continue, else 1."""
        return 1 if self in (FailureKind.OUTAGE, FailureKind.DEFECT, FailureKind.CRASH) else 3


@dataclass(frozen=True)
class QueryFailure:
    """A failure as shown to the user: its kind, one sentence, and what to do."""

    cause: FailureKind
    message: str
    fix: str = ""


COMMITTED_ELSEWHERE = "another run committed a batch of this checkpoint"
# The suggested fix if records are gone.
GONE = "find out what is lost; to continue without those records: 'millstream run --accept-gap'"

# Class names in the text of a Java stack trace. Each means that a server could not be reached or was not ready. Each
# system adds its own.
_OUTAGES = (
    r"java\.net\.(?:ConnectException|SocketException|SocketTimeoutException|UnknownHostException|NoRouteToHost)"
    r"|java\.util\.concurrent\.TimeoutException"
    r"|org\.apache\.hadoop\.(?:net\.ConnectTimeoutException|ipc\.(?:RetriableException|StandbyException))"
    # A name node that has just started, and data nodes that have not come back yet.
    r"|org\.apache\.hadoop\.hdfs\.(?:server\.namenode\.SafeModeException|BlockMissingException)"
    r"|could only be written to 0 of the|does not have enough number of replicas|datanodes .* are bad"
    # A server that was killed while it had a call. Hadoop's client has an EOFException of its own, which says so.
    r"|End of File Exception between local host|java\.io\.IOException: (?:Connection reset by peer|Broken pipe)"
    r"|org\.apache\.hadoop\.fs\.s3a\.(?:AWSServiceThrottled|AWSStatus500|AWSApiCallTimeout)Exception"
    # What the client of S3 says of any connection that failed, such as one that was closed without a response.
    r"|Unable to execute HTTP request"
    r"|No space left on device|Too many open files"
)
# Spark found a file of the other run before its own write, or at the end of it. The last text is that of
# ConditionalWrites.java.
_CONFLICT = re.compile(
    r"CONCURRENT_STREAM_LOG_UPDATE|Multiple streaming queries are concurrently using"
    r"|was written by another process"
)
# Error conditions of Spark for records that were deleted before they were read. Each system adds its own.
_GONE = r"DATA_LOSS\.|data may have been lost"
# A Python worker or an executor that was killed, or ran out of memory.
_CRASH = re.compile(
    r"Python worker exited unexpectedly|Python worker (?:process )?(?:crashed|failed to connect)|ExecutorLostFailure"
    r"|java\.lang\.OutOfMemoryError|Lost executor"
)
# Error conditions for checkpoint files that Spark needs and cannot find or read.
_DAMAGED = re.compile(
    r"CANNOT_LOAD_STATE_STORE|MISSING_STATE_DIRECTORY|STREAMING_CHECKPOINT_MISSING_METADATA_FILE"
    r"|CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED"
)
# A local file whose name contains a colon. Hadoop also opens its checksum file, and takes that name for an address.
_COLON = re.compile(
    r"Encountered error while reading file (file:.*/[^/\n]*:[^/\n]*)\.\s*(?:SQLSTATE|$)", re.MULTILINE
)
# `[CONDITION] message SQLSTATE: 22018`. One condition may be nested inside another's message.
_CONDITION = re.compile(
    r"\[([A-Z][A-Z0-9_.]+)\]\s*((?:(?!\[[A-Z][A-Z0-9_.]+\]).)+?)\s*(?:SQLSTATE: \w+|(?=\[[A-Z][A-Z0-9_.]+\])|$)",
    re.DOTALL,
)
# What the JVM raised in a call from Python, which py4j writes below a line that only names the call.
_JAVA_RAISED = re.compile(r"An error occurred while calling .*\n\s*: (\S.*)")
# The message of an expectation with `otherwise: fail`, a malformed record or a `raise_error` of the user.
_USER_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\]\s*(.+?)\s*SQLSTATE: P0001", re.DOTALL)


def classify(reported: Exception | None, raised: Exception | None) -> QueryFailure:
    """Classify the failure of a query: `reported` is Spark's exception, `raised` that of Millstream's batch code."""
    for error in _list_causes(raised):
        match error:
            case Outage():
                return QueryFailure(FailureKind.OUTAGE, redact(error.what), error.fix)
            case CheckpointMismatch():
                return QueryFailure(FailureKind.CHECKPOINT, redact(error.what), error.fix)
            case CheckpointError():
                return QueryFailure(FailureKind.FENCED, redact(error.what), error.fix)
            case NotReady():
                return QueryFailure(FailureKind.OUTAGE, redact(error.what), error.fix)
            case MillstreamError():
                return QueryFailure(FailureKind.DEFECT, redact(error.what), error.fix)
            case ConnectionError() | TimeoutError():
                return QueryFailure(FailureKind.OUTAGE, redact(f"{type(error).__name__}: {error}"))
    # Redact the whole text before parts are cut out of it, because a part of a secret cannot be recognised.
    text = redact("\n".join(str(error) for error in (raised, reported) if error is not None))
    # A quoted row may contain any text, such as a line of another program's log.
    searched = _USER_RAISED.sub("", text)
    if _CONFLICT.search(searched):
        return QueryFailure(FailureKind.FENCED, COMMITTED_ELSEWHERE, "stop the other run")
    if _pattern(_GONE, "data_losses").search(searched):
        return QueryFailure(FailureKind.GONE, _extract_message(searched), GONE)
    outage = _pattern(_OUTAGES, "outages").search(searched)
    # Spark says of any file of state that it could not read it, also if the file system was away.
    if _DAMAGED.search(searched) and outage is None:
        return QueryFailure(
            FailureKind.CHECKPOINT,
            f"a checkpoint file is missing or damaged: {_extract_message(searched)}",
            COPY,
        )
    if match := _CRASH.search(searched):
        return QueryFailure(FailureKind.CRASH, _extract_line(searched, match[0]))
    if outage is not None:
        return QueryFailure(FailureKind.OUTAGE, _extract_line(searched, outage[0]))
    if colon := _COLON.search(searched):
        return QueryFailure(
            FailureKind.DEFECT,
            f"Spark cannot read {colon[1]}, because the file's name contains a colon",
            "rename the file, then start again: it is read under its new name",
        )
    return QueryFailure(FailureKind.DEFECT, _extract_message(text))


@cache
def _pattern(common: str, name: str) -> re.Pattern[str]:
    """Return a pattern for what `common` matches, or a system's patterns of that name."""
    own = (pattern for system in registry.systems().values() for pattern in getattr(system, name))
    return re.compile("|".join([common, *own]))


def _list_causes(error: BaseException | None) -> list[BaseException]:
    """List an exception and its causes, outermost first. `raise … from None` ends the list."""
    chain: list[BaseException] = []
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return chain


def _extract_line(text: str, name: str) -> str:
    """Return the first line of a stack trace with a name in it."""
    return _remove_packages(next((line.strip() for line in text.splitlines() if name in line), name))


def _remove_packages(line: str) -> str:
    """Return the line of a stack trace that names an exception, without its package."""
    line = line.removeprefix("Caused by:").strip()
    return re.sub(r"\b(?:[a-z_]+\.)+([A-Z]\w+)", r"\1", line)[:300]


def _extract_message(text: str) -> str:
    """Return Spark's message of a failure: that of the innermost condition, or the first line."""
    if user_error := _USER_RAISED.search(text):
        return " ".join(user_error[1].split())
    conditions = [condition for condition in _CONDITION.findall(text) if condition[0] != "STREAM_FAILED"]
    if conditions:
        name, message = conditions[-1]
        return f"{' '.join(message.split())[:500]} [{name}]"
    if java := _JAVA_RAISED.findall(text):
        return _remove_packages(java[-1])
    python = [line for line in text.splitlines() if re.match(r"\w[\w.]*(?:Error|Exception): ", line)]
    return (python[-1] if python else next((line for line in text.splitlines() if line.strip()), "unknown"))[
        :500
    ]
