"""Stand-ins for what cannot be known here: a table without columns, a module that is not installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.group import GroupedData
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.runtime.scripts.record import Doubt, Recording

# Actions, with what they give for a table without rows.
_ANSWERS: dict[str, Any] = {
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
_FRAMES = frozenset(name for name in dir(DataFrame) if not name.startswith("_")) | frozenset(
    name for name in dir(GroupedData) if not name.startswith("_")
)


class Unknown:
    """A DataFrame of which neither rows nor columns are known: whatever is made of it is unknown too."""

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
        """What is not known, and why."""
        return self._doubt

    def beside(self, other: object) -> Unknown:
        """What an operation of this and another frame gives."""
        streams = self.isStreaming or bool(getattr(other, "isStreaming", False))
        return (
            self if streams == self.isStreaming else Unknown(self._doubt, self._recording, streaming=streams)
        )

    def createOrReplaceTempView(self, name: str) -> None:  # noqa: N802 - Spark's name
        """Remember that the view is unknown."""
        self._recording.unknown[name.lower()] = self._doubt

    createTempView = createGlobalTempView = createOrReplaceGlobalTempView = createOrReplaceTempView  # noqa: N815
    registerTempTable = createOrReplaceTempView  # noqa: N815

    def transform(self, function: Any, *args: Any, **named: Any) -> Any:
        """Call the user's function with this, as Spark would."""
        return function(self, *args, **named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name == "toPandas":
            return lambda: pd.DataFrame()
        if name in ("groupBy", "groupby", "rollup", "cube", "groupingSets"):
            return lambda *_args, **_named: _Groups(self)
        if name in _ANSWERS:
            answer = list(_ANSWERS[name]) if _ANSWERS[name] == () else _ANSWERS[name]
            return lambda *_args, **_named: answer
        if name == "writeStream":
            # Imported here: writers and stand-ins make each other.
            from millstream.runtime.scripts.writing import UnknownWriter  # noqa: PLC0415

            return UnknownWriter(self, self._recording)
        if name in ("write", "writeTo", "rdd", "na", "stat"):
            return Absent(self._doubt, self)
        if name in _FRAMES:
            return lambda *args, **_named: next(
                (self.beside(one) for one in args if hasattr(one, "isStreaming")), self
            )
        # Any other attribute is a column, and Spark looks for a column of that name when it is used.
        return F.col(name)

    def __getitem__(self, item: Any) -> Any:
        return F.col(item) if isinstance(item, str) else self

    def __iter__(self) -> Iterator[Any]:
        return iter(())


class _Groups:
    """Rows of an unknown table in groups: any function of them gives the unknown table."""

    def __init__(self, frame: Unknown) -> None:
        self._frame = frame

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_args, **_named: self if name in ("pivot", "cogroup") else self._frame


class Absent:
    """A module, class or value that is not here; whatever is asked of it is absent too."""

    def __init__(self, doubt: Doubt, frame: Unknown | None = None) -> None:
        self.__dict__["_doubt"] = doubt
        self.__dict__["_frame"] = frame

    @property
    def doubt(self) -> Doubt:
        """What is not here."""
        found: Doubt = self.__dict__["_doubt"]
        return found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args: Any, **named: Any) -> Any:
        """What the call gives is absent too."""
        # A decorator gives its function back, and what wraps a builder of sessions gives that builder.
        if len(args) == 1 and not named and (callable(args[0]) or hasattr(args[0], "getOrCreate")):
            return args[0]
        found = next((one for one in (*args, *named.values()) if hasattr(one, "getOrCreate")), None)
        return found if found is not None else (self._frame or self)

    def __getitem__(self, item: Any) -> Any:
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        """Takes what is set, and forgets it."""

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __bool__(self) -> bool:
        return False

    def __enter__(self) -> Absent:
        return self

    def __exit__(self, *raised: object) -> None:
        """Leaves what was raised."""

    def __str__(self) -> str:
        return ""
