"""What a Java error of Hadoop's client of S3 means, in one sentence."""

from __future__ import annotations

import pytest

from millstream.diagnostics.failure import NotReady, Unreachable
from millstream.spark.cluster.buckets import explain_refusal

PLACE = "s3a://lake/orders"


# Beginnings of real errors, of Hadoop 3.5 against S3Proxy, and of Amazon's documentation for the missing right.
@pytest.mark.parametrize(
    ("error", "code", "what"),
    [
        (
            "AccessDeniedException: s3a://lake/orders: listObjects: S3Exception: Forbidden (Service: S3, "
            "Status Code: 403):SignatureDoesNotMatch",
            "MS567",
            "S3 does not accept the access key for bucket 'lake' (SignatureDoesNotMatch)",
        ),
        (
            "org.apache.hadoop.fs.s3a.UnknownStoreException: `s3a://lake/orders': Bucket does not exist",
            "MS561",
            "there is no bucket 'lake' at the S3 endpoint of this key",
        ),
        (
            "AccessDeniedException: orders: Writing Object: S3Exception: Access Denied (Service: S3, Status "
            "Code: 403):AccessDenied",
            "MS567",
            "the access key may not write s3a://lake/orders",
        ),
        (
            "AWSClientIOException: Unable to execute HTTP request: Connect to 127.0.0.1:1 failed: Connection refused",
            "MS560",
            "the S3 server of bucket 'lake' does not answer",
        ),
        (
            "java.io.IOException: NoAuthWithAWSException: No AWS Credentials provided by any provider",
            "MS567",
            "there is no access key for bucket 'lake'",
        ),
    ],
)
def test_an_error_of_the_client_is_one_sentence(error: str, code: str, what: str) -> None:
    refusal = explain_refusal(PLACE, error)

    assert (refusal.code, refusal.what) == (code, what)
    assert refusal.fix


def test_a_silent_server_may_answer_later_and_a_wrong_key_is_for_the_user() -> None:
    assert isinstance(explain_refusal(PLACE, "Connection refused").as_error(), Unreachable)
    assert type(explain_refusal(PLACE, "InvalidAccessKeyId").as_error()) is NotReady
