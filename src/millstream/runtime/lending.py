"""A session of its own for each pipeline that is checked, within the one Spark of the process."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@contextmanager
def lent(spark: SparkSession, conf: Mapping[str, object]) -> Iterator[SparkSession]:
    """A session with views and settings of its own, which the user's functions get as the active one.

    `conf` are settings of the pipeline; those that Spark takes at its start only have no effect.
    """
    before = SparkSession._instantiatedSession
    kind: Any = SparkSession._get_j_spark_session_class(spark._jvm)
    session = spark.newSession()
    for key, value in conf.items():
        if session.conf.isModifiable(key):
            session.conf.set(key, value if isinstance(value, bool | int | str) else str(value))
    SparkSession._instantiatedSession = session
    kind.setActiveSession(session._jsparkSession)
    kind.setDefaultSession(session._jsparkSession)
    try:
        yield session
    finally:
        SparkSession._instantiatedSession = before
        # Another one may be lent around this one.
        kind.setActiveSession((before or spark)._jsparkSession)
        kind.setDefaultSession((before or spark)._jsparkSession)
