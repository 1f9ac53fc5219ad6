"""Append a batch with its number in one commit, without rebuilding the table's state for the last number."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame


class NumberedAppend:
    """One attempt to append a frame to a table in a folder, as the batch of a writer.

    Delta's writer reads the whole state of the table for the writer's last number, which takes longer than the append
    of a small batch. The checksum that Delta stores with each commit has the same number. This class makes Delta's
    own append in its own transaction: it reads the number from the checksum, and makes the transaction depend on it,
    so that a commit of the same writer in between is a conflict.
    """

    def __init__(self, frame: DataFrame, path: str, options: Mapping[str, str]) -> None:
        self._frame = frame
        self._writer = options["txnAppId"]
        self._batch = int(options["txnVersion"])
        jvm: Any = internals.jvm(frame.sparkSession)
        self._session: Any = internals.java_session(frame.sparkSession)
        self._delta: Any = jvm.org.apache.spark.sql.delta
        self._option: Callable[[object], Any] = jvm.scala.Option.apply
        self._mode: Any = jvm.org.apache.spark.sql.SaveMode.Append
        converters: Any = jvm.org.apache.spark.api.python.PythonUtils
        self._nothing: Any = converters.toSeq(jvm.java.util.ArrayList())
        self._unset: Any = converters.toScalaMap(jvm.java.util.HashMap())
        java_options: Any = jvm.java.util.HashMap()
        for name, value in options.items():
            java_options[name] = value
        self._options: Any = self._delta.DeltaOptions(
            converters.toScalaMap(java_options), self._session.sessionState().conf()
        )
        self._log: Any = self._delta.DeltaLog.forTable(self._session, path)
        self._transaction: Any = self._log.startTransaction(self._option(None), self._option(None))

    @property
    def has_table(self) -> bool:
        """Whether there is a table in the folder."""
        return int(self._transaction.snapshot().version()) >= 0

    def last(self) -> int | None:
        """Return the writer's last batch, -1 before its first, or None if no checksum has it.

        A table that another tool writes to may have commits without a checksum, and Delta leaves the numbers out if
        there are many.
        """
        checksum = self._transaction.snapshot().checksumOpt()
        transactions = checksum.get().setTransactions() if checksum.isDefined() else checksum
        if not transactions.isDefined():
            return None
        transaction_list = transactions.get()
        for transaction in (transaction_list.apply(index) for index in range(transaction_list.size())):
            if str(transaction.appId()) == self._writer:
                return int(transaction.version())
        return -1

    def commit(self, alone: AbstractContextManager[None] | None = None) -> None:
        """Write the rows and the number; nothing if the table has this batch or a later one.

        The rows are written first, and then committed inside `alone`.

        Raises Delta's errors: `DELTA_CONCURRENT_TRANSACTION` if this writer's number has changed since the
        transaction began.
        """
        last = self.last()
        assert last is not None, "no checksum has the last batch"
        if last >= self._batch:
            return
        dependencies: Any = self._transaction.readTxn()
        getattr(dependencies, "$plus$eq")(self._writer)
        none, no = self._option(None), False
        rows = internals.java_frame(self._frame)
        write = self._delta.commands.WriteIntoDelta(
            self._log, self._mode, self._options, self._nothing, self._unset, rows, none, none, no
        )
        merges = self._option(True if self._options.canMergeSchema() else None)
        metadata = self._options.userMetadata()
        operation = getattr(self._delta, "DeltaOperations$Write")(
            self._mode, self._option(self._nothing), none, metadata, none, none, merges, none, none
        )
        # While the transaction is active, a batch that reads the same table reads the transaction's version.
        active: Any = getattr(getattr(self._delta, "OptimisticTransaction$"), "MODULE$")
        active.setActive(self._transaction)
        try:
            commit_data = write.writeAndReturnCommitData(self._transaction, self._session, none, no)
            with alone or nullcontext():
                self._transaction.commitIfNeeded(commit_data.actions(), operation, commit_data.stringTags())
        finally:
            active.clearActive()
