"""Give each checked pipeline a separate session within the one Spark of the process."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession


@contextmanager
def separate_session(spark: SparkSession, conf: Mapping[str, object]) -> Iterator[SparkSession]:
    """Yield a session with its own views and settings, which the user's functions get as the active one.

    `conf` are settings of the pipeline. Those that Spark reads only at its start have no effect.
    """
    former = internals.default_session()
    session = spark.newSession()
    for key, value in conf.items():
        if session.conf.isModifiable(key):
            session.conf.set(key, value if isinstance(value, bool | int | str) else str(value))
    internals.set_default_session(session)
    try:
        yield session
    finally:
        # The former session may itself come from an outer `separate_session`.
        internals.set_default_session(former, in_jvm=former or spark)
