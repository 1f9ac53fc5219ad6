"""Ask S3 whether Spark may write to a place: the bucket, the key and its rights, one sentence for what is wrong."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.checkpoint.remote.store_check import require_conditional_writes
from millstream.diagnostics.failure import NotReady, Unreachable
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

_RIGHTS = "s3:ListBucket, GetObject, PutObject, DeleteObject and AbortMultipartUpload"
_WRONG_KEY = re.compile(
    r"(InvalidAccessKeyId|SignatureDoesNotMatch|InvalidToken|ExpiredToken|TokenRefreshRequired|InvalidSecurity)"
)
_NO_KEY = re.compile(r"NoAuthWithAWSException|NoAwsCredentials|Unable to load credentials")
_NO_BUCKET = re.compile(r"UnknownStoreException|NoSuchBucket")
_NO_RIGHT = re.compile(r"AccessDenied|Status Code: 403|Forbidden")
_AWAY = re.compile(
    r"ConnectException|Connection refused|UnknownHost|ConnectTimeout|SocketTimeout|NoRouteToHost|Status Code: 5\d\d"
    r"|Unable to execute HTTP request"
)


@dataclass(frozen=True)
class BucketRefusal:
    """Why a place on S3 cannot be written: the code of the finding, one sentence, and what to do."""

    code: str
    what: str
    fix: str

    def as_error(self) -> NotReady:
        """Return the error with which a run ends."""
        return (Unreachable if self.code == "MS560" else NotReady)(self.what, self.fix)


def examine_places(spark: SparkSession, places: Iterable[str]) -> Iterator[tuple[str, BucketRefusal]]:
    """Yield each of these `s3a://` places that Spark cannot write, with the reason.

    Lists the place, then writes an empty object into it, whose name readers of tables ignore, and deletes it.
    """
    for place in dict.fromkeys(places):
        refusal = _examine(spark, place)
        if refusal is not None:
            yield place, refusal


def examine_conditions(place: str) -> BucketRefusal | None:
    """Return why the store of a place cannot keep a checkpoint, or None. The session of this process asks it."""
    try:
        require_conditional_writes(place)
    except NotReady as error:
        return BucketRefusal("MS576", error.what, error.fix)
    except OSError as error:
        return explain_refusal(place, str(error))
    return None


def explain_refusal(place: str, error: str) -> BucketRefusal:
    """Return what a Java error of Hadoop's client of S3 means for a place."""
    bucket = place.partition("://")[2].partition("/")[0]
    if _NO_KEY.search(error):
        return BucketRefusal(
            "MS567",
            f"there is no access key for bucket '{bucket}'",
            f"set spark.hadoop.fs.s3a.bucket.{bucket}.access.key and secret.key, or AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or give the machine a role",
        )
    if match := _WRONG_KEY.search(error):
        return BucketRefusal(
            "MS567",
            f"S3 does not accept the access key for bucket '{bucket}' ({match[1]})",
            "correct the access key and its secret",
        )
    if _NO_BUCKET.search(error):
        return BucketRefusal(
            "MS561",
            f"there is no bucket '{bucket}' at the S3 endpoint of this key",
            "create the bucket, or correct its name",
        )
    if _AWAY.search(error):
        return BucketRefusal(
            "MS560",
            f"the S3 server of bucket '{bucket}' does not answer",
            "start it, or correct fs.s3a.endpoint",
        )
    if _NO_RIGHT.search(error):
        return BucketRefusal(
            "MS567", f"the access key may not write {place}", f"grant it {_RIGHTS} on the bucket"
        )
    reason = error.strip().splitlines()[0][:200] if error.strip() else "unknown error"
    return BucketRefusal("MS567", f"{place} cannot be written: {reason}", "correct its path or its settings")


def _examine(spark: SparkSession, place: str) -> BucketRefusal | None:
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - importing this module must stay cheap

    jvm: Any = internals.jvm(spark)
    folder = jvm.org.apache.hadoop.fs.Path(place)
    probe = jvm.org.apache.hadoop.fs.Path(folder, f"_millstream-probe-{uuid.uuid4().hex}")
    try:
        # Not from the cache, so that a changed key counts.
        system = jvm.org.apache.hadoop.fs.FileSystem.newInstance(
            folder.toUri(), internals.hadoop_configuration(spark)
        )
        try:
            _list(system, folder)
            system.create(probe, True).close()  # noqa: FBT003 - Hadoop's "overwrite"
            system.delete(probe, False)  # noqa: FBT003 - Hadoop's "recursive"
        finally:
            system.close()
    except Py4JJavaError as error:
        return explain_refusal(place, str(error))
    return None


def _list(system: Any, folder: Any) -> None:
    """List a place that may not exist yet: S3 names the reason of a refusal in a listing, and not in a look."""
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - as above

    try:
        system.listStatus(folder)
    except Py4JJavaError as error:
        if str(error.java_exception.getClass().getSimpleName()) != "FileNotFoundException":
            raise
