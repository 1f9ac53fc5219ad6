"""Lock checkpoints in the JVM of a run too, because it may outlive its Python process and finish its writes."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError

from millstream.checkpoint.lock import jvm_lock_file
from millstream.checkpoint.remote.path import RemotePath
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from millstream.pipeline.model import Pipeline


@contextlib.contextmanager
def lock_in_jvm(spark: SparkSession, pipeline: Pipeline, queries: Sequence[str]) -> Iterator[None]:
    """Have the JVM lock the checkpoints of these queries, until the context ends or the JVM dies.

    The caller has their `CheckpointLock`.
    """
    jvm = internals.jvm(spark)
    assert jvm is not None, "a session has a JVM"
    channels = []
    try:
        for query in queries:
            folder = pipeline.checkpoint_folder(query)
            # The lease names the JVM, which renews it: no lock of a local file is needed beside it.
            if isinstance(folder, RemotePath):
                continue
            file = jvm_lock_file(folder)
            file.parent.mkdir(parents=True, exist_ok=True)
            channel = jvm.java.io.RandomAccessFile(str(file), "rw").getChannel()
            channels.append(channel)
            if channel.tryLock() is None:
                # The lock file of a live run was deleted, so `CheckpointLock` did not see it. Sinks fence it out.
                continue
            # Write only after locking, because until then a reader must find the other run's process id. Python must
            # not write the file either: the JVM would keep its lock, but two processes would write one file.
            process = f"{jvm.java.lang.ProcessHandle.current().pid()} {os.getpid()}"
            channel.truncate(0)
            channel.write(jvm.java.nio.ByteBuffer.wrap(process.encode()))
        yield
    finally:
        for channel in channels:
            # A JVM that has died has released its locks.
            with contextlib.suppress(Py4JError, OSError):
                channel.close()
