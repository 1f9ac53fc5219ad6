"""Appends a batch with its number in one commit, without rebuilding the table's state to look the last number up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame


class NumberedAppend:
    """One attempt to append a frame to a table in a folder, as the batch of a writer.

    Delta's writer asks the whole state of the table for the writer's last number, which takes longer than the append
    of a small batch. The same number stands in the checksum that Delta keeps beside each commit. This is Delta's own
    append, in a transaction of its own: the number is read there, and the transaction is marked as depending on it,
    so that a commit of the same writer in between is a conflict.
    """

    def __init__(self, frame: DataFrame, path: str, options: Mapping[str, str]) -> None:
        self._frame = frame
        self._writer = options["txnAppId"]
        self._batch = int(options["txnVersion"])
        jvm: Any = frame.sparkSession._jvm  # noqa: SLF001 - Delta has no Python call for a transaction
        self._session: Any = frame.sparkSession._jsparkSession  # noqa: SLF001 - as above
        self._delta: Any = jvm.org.apache.spark.sql.delta
        self._option: Callable[[object], Any] = jvm.scala.Option.apply
        self._mode: Any = jvm.org.apache.spark.sql.SaveMode.Append
        converted: Any = jvm.org.apache.spark.api.python.PythonUtils
        self._nothing: Any = converted.toSeq(jvm.java.util.ArrayList())
        self._unset: Any = converted.toScalaMap(jvm.java.util.HashMap())
        given: Any = jvm.java.util.HashMap()
        for name, value in options.items():
            given[name] = value
        self._options: Any = self._delta.DeltaOptions(
            converted.toScalaMap(given), self._session.sessionState().conf()
        )
        self._log: Any = self._delta.DeltaLog.forTable(self._session, path)
        self._transaction: Any = self._log.startTransaction(self._option(None), self._option(None))

    def last(self) -> int | None:
        """The writer's last batch, -1 before its first; None where no checksum tells it.

        A table that another tool writes to may have commits without one, and Delta leaves the numbers out when they
        are many.
        """
        checksum = self._transaction.snapshot().checksumOpt()
        told = checksum.get().setTransactions() if checksum.isDefined() else checksum
        if not told.isDefined():
            return None
        marks = told.get()
        for mark in (marks.apply(index) for index in range(marks.size())):
            if str(mark.appId()) == self._writer:
                return int(mark.version())
        return -1

    def commit(self) -> None:
        """Write the rows and the number; nothing where the table has this batch or a later one.

        Raises what Delta raises, `DELTA_CONCURRENT_TRANSACTION` when this writer's number has changed since the
        transaction began.
        """
        last = self.last()
        assert last is not None, "the log was not asked"
        if last >= self._batch:
            return
        depends: Any = self._transaction.readTxn()
        getattr(depends, "$plus$eq")(self._writer)
        none, no = self._option(None), False
        rows = self._frame._jdf  # noqa: SLF001 - as above
        write = self._delta.commands.WriteIntoDelta(
            self._log, self._mode, self._options, self._nothing, self._unset, rows, none, none, no
        )
        merges = self._option(True if self._options.canMergeSchema() else None)
        said = self._options.userMetadata()
        operation = getattr(self._delta, "DeltaOperations$Write")(
            self._mode, self._option(self._nothing), none, said, none, none, merges, none, none
        )
        # While it is active, a batch that reads the same table reads it as the transaction does.
        active: Any = getattr(getattr(self._delta, "OptimisticTransaction$"), "MODULE$")
        active.setActive(self._transaction)
        try:
            told = write.writeAndReturnCommitData(self._transaction, self._session, none, no)
            self._transaction.commitIfNeeded(told.actions(), operation, told.stringTags())
        finally:
            active.clearActive()
