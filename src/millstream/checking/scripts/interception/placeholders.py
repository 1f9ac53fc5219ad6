"""Placeholders for unknown values: a table whose columns are not known, a module that is not installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.group import GroupedData
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    "printSchema": None,
    "explain": None,
    "foreach": None,
    "foreachPartition": None,
    "inputFiles": (),
}
_FRAME_METHODS = frozenset(name for name in dir(DataFrame) if not name.startswith("_")) | frozenset(
    name for name in dir(GroupedData) if not name.startswith("_")
)


class Unknown:
    """A DataFrame with unknown rows and columns. Everything derived from it is unknown too."""

    def __init__(self, doubt: Doubt, recording: Recording, *, streaming: bool) -> None:
        self._doubt = doubt
        self._recording = recording
        self.isStreaming = streaming
        self.columns: list[str] = []
        self.dtypes: list[tuple[str, str]] = []
        self.schema = StructType()
        self.sparkSession: Any = None

    @property
    def doubt(self) -> Doubt:
        """The unknown value, and the reason."""
        return self._doubt

    def beside(self, other: object) -> Unknown:
        """Return the result of an operation on this and another frame."""
        is_streaming = self.isStreaming or bool(getattr(other, "isStreaming", False))
        return (
            self
            if is_streaming == self.isStreaming
            else Unknown(self._doubt, self._recording, streaming=is_streaming)
        )

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
            # Imported here because the modules of writers and placeholders import each other.
            from millstream.checking.scripts.interception.writers import UnknownWriter  # noqa: PLC0415

            return UnknownWriter(self, self._recording)
        if name in ("write", "writeTo", "rdd", "na", "stat"):
            return Absent(self._doubt, self)
        if name in _FRAME_METHODS:
            return lambda *args, **_kwargs: next(
                (self.beside(argument) for argument in args if hasattr(argument, "isStreaming")), self
            )
        # Any other attribute is a column. Spark looks up the column when it is used.
        return F.col(name)

    def __getitem__(self, item: Any) -> Any:
        return F.col(item) if isinstance(item, str) else self

    def __iter__(self) -> Iterator[Any]:
        return iter(())


class _Groups:
    """The groups of an unknown table. Any function of them returns the unknown table."""

    def __init__(self, frame: Unknown) -> None:
        self._frame = frame

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_args, **_kwargs: self if name in ("pivot", "cogroup") else self._frame


class Absent:
    """A placeholder for a missing module, class or value. Its attributes and results are absent too."""

    def __init__(self, doubt: Doubt, frame: Unknown | None = None) -> None:
        self.__dict__["_doubt"] = doubt
        self.__dict__["_frame"] = frame

    @property
    def doubt(self) -> Doubt:
        """The missing value, and the reason."""
        doubt: Doubt = self.__dict__["_doubt"]
        return doubt

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return an absent result."""
        # A decorator returns its function, and a wrapper of a session builder returns that builder.
        if len(args) == 1 and not kwargs and (callable(args[0]) or hasattr(args[0], "getOrCreate")):
            return args[0]
        builder = next(
            (argument for argument in (*args, *kwargs.values()) if hasattr(argument, "getOrCreate")), None
        )
        return builder if builder is not None else (self._frame or self)

    def __getitem__(self, item: Any) -> Any:
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        """Ignore the value."""

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __bool__(self) -> bool:
        return False

    def __enter__(self) -> Absent:
        return self

    def __exit__(self, *raised: object) -> None:
        """Do not handle the error."""

    def __str__(self) -> str:
        return ""
