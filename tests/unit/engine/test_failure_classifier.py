"""An outage passes, a defect does not: which is which decides whether a query starts again."""

import pytest

from millstream.diagnostics.failure import (
    CheckpointError,
    CheckpointMismatch,
    MillstreamError,
    NotReady,
    Outage,
)
from millstream.engine.failure_classifier import FailureKind, classify

KAFKA = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Timed out SQLSTATE: XXKST
Caused by: org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node. Call: listOffsets
\tat org.apache.spark.sql.kafka010.KafkaOffsetReaderAdmin"""
CAST = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated: [CAST_INVALID_INPUT] The value 'x' of the
 type "STRING" cannot be cast to "INT" because it is malformed. SQLSTATE: 22018 SQLSTATE: XXKST"""
RAISED = """[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted SQLSTATE: XXKST
org.apache.spark.SparkRuntimeException: [USER_RAISED_EXCEPTION] malformed record in source 'clicks': the value is not
 JSON, topic clicks, partition 0, offset 17 SQLSTATE: P0001"""

AWAY_AT_LOAD = """[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state. SQLSTATE: 58030
Caused by: java.net.ConnectException: Call From node/127.0.0.1 to localhost:8020 failed on connection exception"""
# What Hadoop's client says of a name node that was killed while it had a call.
KILLED = "DestHost:destPort localhost:8020 , Failed on local exception: java.io.{} local host is: (unknown)"


@pytest.mark.parametrize(
    ("reported", "raised", "cause"),
    [
        (Exception(KAFKA), None, FailureKind.OUTAGE),
        (Exception("java.net.ConnectException: Connection refused"), None, FailureKind.OUTAGE),
        (Exception("java.io.IOException: No space left on device"), None, FailureKind.OUTAGE),
        (Exception("..."), Outage("Postgres is away"), FailureKind.OUTAGE),
        (Exception("..."), NotReady("there is no table"), FailureKind.OUTAGE),
        (None, ConnectionResetError("reset"), FailureKind.OUTAGE),
        (Exception("SparkException: Python worker exited unexpectedly (crashed)"), None, FailureKind.CRASH),
        (Exception("[KAFKA_DATA_LOSS.START_OFFSET_RESET] x SQLSTATE: 22000"), None, FailureKind.GONE),
        (Exception("[CANNOT_LOAD_STATE_STORE.X] no file SQLSTATE: 58030"), None, FailureKind.CHECKPOINT),
        (
            Exception("..."),
            CheckpointMismatch("the checkpoint is older than the sink"),
            FailureKind.CHECKPOINT,
        ),
        (
            Exception(
                "org.apache.hadoop.fs.s3a.AWSClientIOException: Writing Object on checkpoints/orders/offsets/7: "
                "software.amazon.awssdk.core.exception.SdkClientException: Unable to execute HTTP request: "
                "The target server failed to respond"
            ),
            None,
            FailureKind.OUTAGE,
        ),
        (Exception(AWAY_AT_LOAD), None, FailureKind.OUTAGE),
        (Exception(KILLED.format("EOFException: End of File Exception between")), None, FailureKind.OUTAGE),
        (
            Exception(KILLED.format("IOException: Connection reset by peer; Host Details :")),
            None,
            FailureKind.OUTAGE,
        ),
        (
            Exception(
                "Unable to close file because the last block blk_1 does not have enough number of replicas."
            ),
            None,
            FailureKind.OUTAGE,
        ),
        (
            Exception("java.io.IOException: All datanodes [DatanodeInfoWithStorage[127.0.0.1:1]] are bad."),
            None,
            FailureKind.OUTAGE,
        ),
        (Exception("java.io.EOFException: Premature EOF in a Parquet file"), None, FailureKind.DEFECT),
        (Exception(CAST), None, FailureKind.DEFECT),
        (Exception("..."), MillstreamError("a row has no key"), FailureKind.DEFECT),
        (Exception("..."), ValueError("in the user's function"), FailureKind.DEFECT),
        (Exception("..."), CheckpointError("a later run has taken over"), FailureKind.FENCED),
        (Exception("[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update"), None, FailureKind.FENCED),
        (
            Exception("Multiple streaming queries are concurrently using s3a://lake/orders/offsets."),
            None,
            FailureKind.FENCED,
        ),
        (
            Exception(
                "FileAlreadyExistsException: s3a://lake/orders/state/0/1/3.delta was written by another process"
            ),
            None,
            FailureKind.FENCED,
        ),
    ],
)
def test_the_cause_decides_what_is_done(
    reported: Exception | None, raised: Exception | None, cause: FailureKind
) -> None:
    assert classify(reported, raised).cause is cause


def test_a_cause_deep_in_the_chain_is_found() -> None:
    failed = RuntimeError("the batch failed")
    failed.__cause__ = Outage("Postgres is away")

    assert classify(None, failed).message == "Postgres is away"


@pytest.mark.parametrize("name", ["2026-01-01T12:00:00.json", "orders of 12:00.json"])
def test_a_file_with_a_colon_in_its_name_is_the_cause(name: str) -> None:
    text = (
        "org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file "
        f"file:///data/in/{name}.  SQLSTATE: KD001\n"
        "Caused by: java.lang.IllegalArgumentException: java.net.URISyntaxException: Relative path in absolute "
        f"URI: .{name}.crc"
    )

    failure = classify(Exception(text), None)

    assert failure.message == (
        f"Spark cannot read file:///data/in/{name}, because the file's name contains a colon"
    )
    assert failure.fix.startswith("rename the file")
    # A file that cannot be read for another reason is named as Spark names it.
    assert "FAILED_READ_FILE" in classify(Exception(text.replace(":00", "-00")), None).message


def test_a_defect_is_told_by_its_condition() -> None:
    assert classify(Exception(CAST), None).message == (
        'The value \'x\' of the type "STRING" cannot be cast to "INT" because it is malformed. [CAST_INVALID_INPUT]'
    )


def test_a_malformed_record_is_told_by_its_place() -> None:
    assert "topic clicks, partition 0, offset 17" in classify(Exception(RAISED), None).message


def test_an_outage_is_told_without_packages() -> None:
    assert classify(Exception(KAFKA), None).message == (
        "TimeoutException: Timed out waiting for a node. Call: listOffsets"
    )


def test_a_password_in_a_message_is_hidden() -> None:
    message = classify(None, Outage("postgresql://u:hunter2@db/x refused")).message

    assert "hunter2" not in message


def test_what_the_jvm_raised_in_a_call_is_told_and_not_the_call() -> None:
    text = (
        "py4j.Py4JException: An exception was raised by the Python Proxy. Return Message: Traceback (most "
        "recent call last):\npy4j.protocol.Py4JJavaError: An error occurred while calling o2599.observedMetrics.\n"
        ": com.fasterxml.jackson.core.JsonGenerationException: Can not write a string\n\tat com.fasterxml.B"
    )

    assert classify(RuntimeError(text), None).message == "JsonGenerationException: Can not write a string"


# Spark's text of a row that fails an expectation, once in its report and once in the stack trace.
FAILED_ROW = """[STREAM_FAILED] Query [id = 1] terminated: [USER_RAISED_EXCEPTION] {0} SQLSTATE: P0001 \
SQLSTATE: XXKST
JVM stacktrace:
org.apache.spark.SparkRuntimeException: [USER_RAISED_EXCEPTION] {0} SQLSTATE: P0001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.raiseError(QueryExecutionErrors.scala:1)"""


@pytest.mark.parametrize(
    "line",
    [
        "java.net.SocketTimeoutException: Read timed out",
        "No space left on device",
        "org.apache.kafka.common.errors.TimeoutException",
        "some data may have been lost",
        "KAFKA_DATA_LOSS",
        "java.lang.OutOfMemoryError: heap",
        "Python worker exited unexpectedly",
        "CONCURRENT_STREAM_LOG_UPDATE",
        "CANNOT_LOAD_STATE_STORE",
    ],
)
def test_a_row_that_quotes_an_error_of_another_program_is_a_defect(line: str) -> None:
    message = f"expectation 'known' of source 'logs' does not hold: {line}, topic logs, offset 17"

    failure = classify(Exception(FAILED_ROW.format(message)), None)

    assert failure.cause is FailureKind.DEFECT
    assert failure.message == message


def test_a_malformed_record_of_several_lines_that_quotes_an_error_is_a_defect() -> None:
    message = "malformed record in source 'logs': not JSON:\njava.net.ConnectException: x, topic logs"

    failure = classify(Exception(FAILED_ROW.format(message)), None)

    assert failure.cause is FailureKind.DEFECT
    assert failure.message == " ".join(message.split())


def test_an_outage_next_to_a_row_that_fails_is_an_outage() -> None:
    text = FAILED_ROW.format("a row") + "\nCaused by: java.net.ConnectException: Connection refused"

    failure = classify(Exception(text), None)

    assert failure.cause is FailureKind.OUTAGE
    assert failure.message == "ConnectException: Connection refused"
