"""Wait until Spark's listeners have received its reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError

from millstream.spark import internals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Milliseconds, enough for listeners to process the reports of a batch or two.
PATIENCE = 5000
_TIMEOUT = "java.util.concurrent.TimeoutException"


def wait_for_reports(spark: SparkSession, patience: int = PATIENCE) -> bool:
    """Wait until no report is pending, at most `patience` milliseconds. Returns whether none is.

    Other queries report all the time, and on a loaded machine faster than listeners can process. The last batch's
    metrics may then come a little later, which is no reason to fail. Raises Py4J's errors if the JVM is gone.
    """
    try:
        internals.wait_for_listeners(spark, patience)
    except Py4JJavaError as error:
        if error.java_exception.getClass().getName() != _TIMEOUT:
            raise
        return False
    return True
