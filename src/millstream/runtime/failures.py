"""Tell an outage, which passes, from a defect, which does not."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from millstream.checkpoint.wrong import COPY
from millstream.diagnostics.failure import CannotGoOn, MillstreamError, NotReady, Outage, Unfit
from millstream.spec.secret import redact

if TYPE_CHECKING:
    from pyspark.errors import StreamingQueryException


class Cause(StrEnum):
    """Why a query failed, which decides whether it starts again."""

    OUTAGE = "outage"
    """Something outside is away; the query starts again after a wait."""
    DEFECT = "defect"
    """The spec, the user's code or a record; it would fail again in the same way."""
    CRASH = "crash"
    """A process that works for the query died; the query starts again, and gives up if one batch kills it often."""
    FENCED = "fenced"
    """Another run has taken this query's place; starting again would fight it."""
    CHECKPOINT = "checkpoint"
    """The checkpoint is damaged, or does not fit its sources or sinks; a person must decide."""
    GONE = "gone"
    """Records that the checkpoint goes on from are not in the source any more."""

    @property
    def exit_code(self) -> int:
        """What a run ends with that a query ended so: 3 where a checkpoint cannot go on, else 1."""
        return 1 if self in (Cause.OUTAGE, Cause.DEFECT, Cause.CRASH) else 3


@dataclass(frozen=True)
class Failure:
    """A failure as a person reads it: the class, one sentence, and what to do."""

    cause: Cause
    message: str
    fix: str = ""


# What a person may do when records are gone.
GONE = "find out what is lost; to go on without those records: 'millstream run --accept-gap'"

# Class names in the text of a Java stack trace. Each means that a server could not be reached or was not ready.
_OUTAGES = re.compile(
    r"java\.net\.(?:ConnectException|SocketException|SocketTimeoutException|UnknownHostException|NoRouteToHost)"
    r"|org\.apache\.kafka\.common\.errors\.(?:TimeoutException|DisconnectException|NetworkException"
    r"|NotLeaderOrFollowerException|LeaderNotAvailableException|CoordinatorNotAvailableException"
    r"|CoordinatorLoadInProgressException|NotCoordinatorException|NotEnoughReplicas\w*|BrokerNotAvailableException"
    r"|KafkaStorageException|UnknownTopicOrPartitionException)"
    r"|java\.util\.concurrent\.TimeoutException"
    r"|org\.apache\.hadoop\.(?:net\.ConnectTimeoutException|ipc\.RetriableException)"
    r"|No space left on device|Too many open files"
)
_CONFLICT = re.compile(r"CONCURRENT_STREAM_LOG_UPDATE")
# Conditions of Spark and of its Kafka source for records that were deleted before they were read.
_GONE = re.compile(r"KAFKA_DATA_LOSS|DATA_LOSS\.|data may have been lost|OffsetOutOfRangeException")
# A Python worker or an executor that was killed, or ran out of memory.
_CRASH = re.compile(
    r"Python worker exited unexpectedly|Python worker (?:process )?(?:crashed|failed to connect)|ExecutorLostFailure"
    r"|java\.lang\.OutOfMemoryError|Lost executor"
)
# Conditions for files of a checkpoint that Spark needs and does not find, or cannot read.
_DAMAGED = re.compile(
    r"CANNOT_LOAD_STATE_STORE|MISSING_STATE_DIRECTORY|STREAMING_CHECKPOINT_MISSING_METADATA_FILE"
    r"|CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED"
)
# `[CONDITION] message SQLSTATE: 22018`; one may stand inside another's message.
_CONDITION = re.compile(
    r"\[([A-Z][A-Z0-9_.]+)\]\s*((?:(?!\[[A-Z][A-Z0-9_.]+\]).)+?)\s*(?:SQLSTATE: \w+|(?=\[[A-Z][A-Z0-9_.]+\])|$)",
    re.DOTALL,
)
_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\]\s*(.+?)\s*SQLSTATE")


def classify(reported: Exception | None, raised: Exception | None) -> Failure:
    """The failure of a query: `reported` is Spark's account of it, `raised` what our own batch code met."""
    for error in _chain(raised):
        match error:
            case Outage():
                return Failure(Cause.OUTAGE, redact(error.what), error.fix)
            case Unfit():
                return Failure(Cause.CHECKPOINT, redact(error.what), error.fix)
            case CannotGoOn():
                return Failure(Cause.FENCED, redact(error.what), error.fix)
            case NotReady():
                return Failure(Cause.OUTAGE, redact(error.what), error.fix)
            case MillstreamError():
                return Failure(Cause.DEFECT, redact(error.what), error.fix)
            case ConnectionError() | TimeoutError():
                return Failure(Cause.OUTAGE, redact(f"{type(error).__name__}: {error}"))
    text = "\n".join(str(error) for error in (raised, reported) if error is not None)
    if _CONFLICT.search(text):
        return Failure(Cause.FENCED, "another run committed a batch of this checkpoint", "stop the other run")
    if _GONE.search(text):
        return Failure(Cause.GONE, redact(_story(text)), GONE)
    if _DAMAGED.search(text):
        return Failure(
            Cause.CHECKPOINT, redact(f"a file of the checkpoint is gone or torn: {_story(text)}"), COPY
        )
    if found := _CRASH.search(text):
        return Failure(Cause.CRASH, redact(_sentence(text, found[0])))
    if found := _OUTAGES.search(text):
        return Failure(Cause.OUTAGE, redact(_sentence(text, found[0])))
    return Failure(Cause.DEFECT, redact(_story(text)))


def _chain(error: BaseException | None) -> list[BaseException]:
    """An exception and what caused it, outermost first."""
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def _sentence(text: str, name: str) -> str:
    """The line of a stack trace that names an exception, without its package."""
    line = next((line.strip() for line in text.splitlines() if name in line), name)
    line = line.removeprefix("Caused by:").strip()
    return re.sub(r"\b(?:[a-z_]+\.)+([A-Z]\w+)", r"\1", line)[:300]


def _story(text: str) -> str:
    """What Spark says of a failure: the message of the innermost condition, or the first line."""
    if raised := _RAISED.search(text):
        return raised[1]
    conditions = [found for found in _CONDITION.findall(text) if found[0] != "STREAM_FAILED"]
    if conditions:
        name, message = conditions[-1]
        return f"{' '.join(message.split())[:500]} [{name}]"
    python = [line for line in text.splitlines() if re.match(r"\w[\w.]*(?:Error|Exception): ", line)]
    return (python[-1] if python else next((line for line in text.splitlines() if line.strip()), "unknown"))[
        :500
    ]


def of_query(error: StreamingQueryException | None, raised: Exception | None) -> Failure:
    """`classify` for a query that has ended."""
    return classify(error, raised)
