"""A placeholder for a table or a stream whose columns are not known."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.group import GroupedData

from millstream.checking.scripts.interception.absent import MARK, Absent
from millstream.spark.internals import default_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.checking.scripts.interception.recording import Doubt, Recording

# Actions, with their results for a table without rows.
_ACTION_RESULTS: dict[str, Any] = {
    "count": 0,
    "collect": (),
    "take": (),
    "tail": (),
    "head": None,
    "first": None,
    "isEmpty": True,
    "toLocalIterator": (),
    "show": None,
    "display": None,
    "printSchema": None,
    "explain": None,
    "foreach": None,
    "foreachPartition": None,
    "inputFiles": (),
}
PROBE = "columns_not_known_in_a_check STRING"
"""The columns of the frame used in place of one with unknown columns. No code of a user names them."""

# Makes the writer of an unknown stream. The module of writers sets it.
unknown_writers: list[Callable[[Unknown, Recording], Any]] = []

_FRAME_METHODS = frozenset(name for name in dir(DataFrame) if not name.startswith("_")) | frozenset(
    name for name in dir(GroupedData) if not name.startswith("_")
)


class Unknown:
    """A DataFrame with unknown rows and columns. Everything derived from it is unknown too.

    `probe` is Spark's frame for the same operations on a source with other columns. It is None as soon as an
    operation depends on the columns.
    """

    def __init__(
        self, doubt: Doubt, recording: Recording, *, streaming: bool, probe: DataFrame | None = None
    ) -> None:
        self._doubt = doubt
        self._probe = probe
        self._recording = recording
        self.isStreaming = streaming
        self.columns = self.dtypes = self.schema = Absent(doubt)
        self.sparkSession: Any = default_session()

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """Spark's class, because a script may ask whether it has a DataFrame."""
        return DataFrame

    @property
    def doubt(self) -> Doubt:
        """The unknown value, and the reason."""
        return self._doubt

    @property
    def probe(self) -> DataFrame | None:
        """Spark's frame for the same operations, as long as none of them depends on the columns."""
        return self._probe

    def beside(self, other: object) -> Unknown:
        """Return the result of an operation on this and another frame."""
        is_streaming = self.isStreaming or (is_frame(other) and bool(other.isStreaming))  # type: ignore[attr-defined]
        return Unknown(self._doubt, self._recording, streaming=is_streaming)

    def with_probe(self, make: Callable[[DataFrame], Any]) -> Unknown:
        """Return the result of an operation on this frame. `make` does the same with the probe."""
        probe, before = None, self._recording.last_error
        if self._probe is not None:
            # Whatever the operation raises for other columns says nothing about those of the user.
            with contextlib.suppress(Exception):
                probe = make(self._probe)
        self._recording.last_error = before
        known = probe if type(probe) is type(self._probe) else None
        return Unknown(self._doubt, self._recording, streaming=self.isStreaming, probe=known)

    def _apply(self, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Unknown:
        other = next((value for value in (*args, *named.values()) if is_frame(value)), None)
        if other is not None:
            return self.beside(other)
        return self.with_probe(lambda probe: getattr(probe, name)(*args, **named))

    def createOrReplaceTempView(self, name: str) -> None:  # noqa: N802 - Spark's name
        """Record that the view is unknown."""
        self._recording.unknown[name.lower()] = self._doubt

    createTempView = createGlobalTempView = createOrReplaceGlobalTempView = createOrReplaceTempView  # noqa: N815
    registerTempTable = createOrReplaceTempView  # noqa: N815

    def transform(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Call the user's function with this, as Spark would."""
        return function(self, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name == "toPandas":
            return lambda: pd.DataFrame()
        if name in ("groupBy", "groupby", "rollup", "cube", "groupingSets"):
            return lambda *_args, **_kwargs: _Groups(self)
        if name in _ACTION_RESULTS:
            result = list(_ACTION_RESULTS[name]) if _ACTION_RESULTS[name] == () else _ACTION_RESULTS[name]
            return lambda *_args, **_kwargs: result
        if name == "writeStream":
            return unknown_writers[0](self, self._recording)
        if name in ("write", "writeTo", "rdd", "na", "stat"):
            return Absent(self._doubt, self)
        if name in _FRAME_METHODS:
            return lambda *args, **named: self._apply(name, args, named)
        # Any other attribute is a column. Spark looks up the column when it is used.
        return F.col(name)

    def __getitem__(self, item: Any) -> Any:
        return F.col(item) if isinstance(item, str) else F.col(MARK) if isinstance(item, int) else self


def is_frame(value: object) -> bool:
    """Return whether a value is a DataFrame, known or not. A column has every attribute, so its class decides."""
    return isinstance(value, DataFrame)


class _Groups:
    """The groups of an unknown table. Any function of them returns the unknown table."""

    def __init__(self, frame: Unknown) -> None:
        self._frame = frame

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_args, **_kwargs: self if name in ("pivot", "cogroup") else self._frame
