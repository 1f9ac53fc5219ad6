"""Wait until Spark's listeners have heard what it has to report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Milliseconds in which listeners take in the reports of a batch or two.
PATIENCE = 5000
_TIMEOUT = "java.util.concurrent.TimeoutException"


def reported(spark: SparkSession, patience: int = PATIENCE) -> bool:
    """Wait until no report is on its way, at most `patience` milliseconds; False when some still are.

    Other queries report all the time, and on a loaded machine faster than listeners take it in: figures of the
    last batch may then come a little later, which is no reason to fail. Raises py4j's errors for a JVM that is gone.
    """
    try:
        spark._jsc.sc().listenerBus().waitUntilEmpty(patience)
    except Py4JJavaError as error:
        if error.java_exception.getClass().getName() != _TIMEOUT:
            raise
        return False
    return True
