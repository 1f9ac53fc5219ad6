"""A placeholder for a table or a stream whose columns are not known."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.group import GroupedData

from millstream.checking.scripts.interception.absent import (
    MARK,
    Absent,
    as_if_with_rows,
    expected,
    note_decision,
)
from millstream.checking.scripts.interception.columns.assumed_columns import PLACEHOLDER, TEXT
from millstream.spark.internals import default_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
# Those of them that return nothing, whatever the rows are.
_SHOWING = frozenset({"show", "display", "printSchema", "explain", "foreach", "foreachPartition"})
PROBE = f"{PLACEHOLDER} STRING"
"""The columns of the frame used in place of one with unknown columns."""

# Names of columns with an underscore before them. Other names like that are asked of a frame by Python and libraries.
_COLUMN = re.compile(r"_+[A-Z]|_(?:id|rescued_data|metadata|corrupt_record|change_type|commit_\w+)$")

# Types of a column of which only the name, or the name of a field, is known.
_OPEN = (TEXT.lower(), "map<")

# The number of columns that are learned from one operation.
_MOST_ATTEMPTS = 100

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
        self,
        doubt: Doubt,
        recording: Recording,
        *,
        streaming: bool,
        probe: DataFrame | None = None,
        sources: tuple[str, ...] = (),
    ) -> None:
        self._doubt = doubt
        self._probe = probe
        self._sources = sources
        self._recording = recording
        self.isStreaming = streaming
        self.dtypes = self.schema = Absent(doubt)
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

    @property
    def columns(self) -> Any:
        """The names of the columns, or a stand-in that contains each name for which the script asks."""
        if self._probe is None or self._recording.assumed is None:
            return Absent(self._doubt)
        names = self._probe.columns
        return names if PLACEHOLDER not in names else _Columns(self)

    def has_column(self, name: object) -> bool:
        """Return whether there is a column, which is assumed if the columns are not known."""
        if self._recording.assumed is not None and isinstance(name, str):
            self._recording.assumed.add(self._sources, [name])
            self.grow()
        return True

    @property
    def sources(self) -> tuple[str, ...]:
        """The unknown sources of this frame. Their columns that the script names are assumed to exist."""
        return self._sources

    def with_probe(self, make: Callable[[DataFrame], Any], *others: Unknown) -> Unknown:
        """Return the result of an operation on this frame. `make` does the same with the probe.

        `others` are further frames that the operation reads.
        """
        probe, before = None, self._recording.last_error
        sources = tuple(
            dict.fromkeys((*self._sources, *(name for other in others for name in other.sources)))
        )
        if self._probe is not None and all(other.probe is not None for other in others):
            # Whatever the operation raises for other columns says nothing about those of the user.
            for _ in range(_MOST_ATTEMPTS):
                try:
                    probe = make(self._probe)
                except Exception as error:  # noqa: BLE001 - an operation of the user may raise anything
                    if self._learn(sources, error) and True in [frame.grow() for frame in (self, *others)]:
                        continue
                break
        self._recording.last_error = before
        is_streaming = self.isStreaming or any(other.isStreaming for other in others)
        if not isinstance(probe, DataFrame):
            return Unknown(self._doubt, self._recording, streaming=is_streaming, sources=sources)
        is_streaming = is_streaming or probe.isStreaming
        return Unknown(self._doubt, self._recording, streaming=is_streaming, probe=probe, sources=sources)

    def _learn(self, sources: tuple[str, ...], error: Exception) -> bool:
        """Learn a column from an error. Returns whether the error says something new."""
        return self._recording.assumed is not None and self._recording.assumed.learn(sources, error)

    def grow(self) -> bool:
        """Give the probe the columns that are assumed by now. In the next run the source has them."""
        assumed, probe = self._recording.assumed, self._probe
        if assumed is None or probe is None or PLACEHOLDER not in probe.columns:
            return False
        known = {name.lower(): kind for name, kind in probe.dtypes}
        types = {name: kind for source in self._sources for name, kind in assumed.types(source).items()}
        new = {
            name: F.lit(None).cast(kind.lower())
            for name, kind in types.items()
            # A column of another type is one that the script has computed by now.
            if known.get(name.lower(), TEXT).lower().startswith(_OPEN)
            and known.get(name.lower()) != kind.lower().replace(" ", "")
        }
        self._probe = probe.withColumns(new) if new else probe
        return bool(new)

    def apply(self, make: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Unknown:
        """Return the result of a function of frames, of which this is one of the arguments."""
        values = (*args, *named.values())
        others = [value for value in values if type(value) is Unknown and value is not self]
        is_streaming = any(is_frame(value) and bool(value.isStreaming) for value in values)
        result = self.with_probe(
            lambda _probe: make(
                *(_with_probes(value) for value in args),
                **{key: _with_probes(value) for key, value in named.items()},
            ),
            *others,
        )
        result.isStreaming = result.isStreaming or is_streaming
        return result

    def _call(self, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Unknown:
        if name == "withColumn" and len(args) > 1 and isinstance(args[1], Absent):
            return add_columns(args[1].doubt, self, self._recording, str(args[0]))
        if name == "alias" and args and self._recording.assumed is not None:
            self._recording.assumed.alias(str(args[0]), self._sources)
        return self.apply(
            lambda frame, *rest, **more: getattr(frame, name)(*rest, **more), (self, *args), named
        )

    def _column(self, name: str) -> Any:
        """Return a column by its name: of the probe, so that a join can tell it from others of this name."""
        probe, assumed = self._probe, self._recording.assumed
        if probe is not None and name in probe.columns:
            return probe[name]
        if assumed is not None and probe is not None and "." not in name:
            assumed.add(self._sources, [name])
            self.grow()
            if self._probe is not None and name in self._probe.columns:
                return self._probe[name]
        return F.col(name)

    def createOrReplaceTempView(self, name: str) -> None:  # noqa: N802 - Spark's name
        """Record that the view is unknown."""
        self._recording.unknown[name.lower()] = self

    createTempView = createGlobalTempView = createOrReplaceGlobalTempView = createOrReplaceTempView  # noqa: N815
    registerTempTable = createOrReplaceTempView  # noqa: N815

    def transform(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Call the user's function with this, as Spark would."""
        return function(self, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and not _COLUMN.match(name):
            raise AttributeError(name)
        if name == "toPandas":
            self._recording.has_emptied_sources = True
            note_decision(self._doubt, sys._getframe(1))
            return lambda: pd.DataFrame()
        if name in ("groupBy", "groupby", "rollup", "cube", "groupingSets"):
            return lambda *args, **named: _Groups(self, ((name, args, named),))
        if name in _ACTION_RESULTS:
            self._recording.has_emptied_sources = True
            result = list(_ACTION_RESULTS[name]) if _ACTION_RESULTS[name] == () else _ACTION_RESULTS[name]
            if name not in _SHOWING:
                note_decision(self._doubt, sys._getframe(1))
                result = as_if_with_rows(result, self._doubt) if expected.are_true else result
            return lambda *_args, **_kwargs: result
        if name == "writeStream":
            return unknown_writers[0](self, self._recording)
        if name in ("write", "writeTo", "rdd", "na", "stat"):
            return Absent(self._doubt, self)
        if name in _FRAME_METHODS:
            return lambda *args, **named: self._call(name, args, named)
        # Any other attribute is a column. Spark looks up the column when it is used.
        return self._column(name)

    def __getitem__(self, item: Any) -> Any:
        return self._column(item) if isinstance(item, str) else F.col(MARK) if isinstance(item, int) else self


def is_frame(value: object) -> bool:
    """Return whether a value is a DataFrame, known or not. A column has every attribute, so its class decides."""
    return isinstance(value, DataFrame)


def add_columns(doubt: Doubt, frame: Any, recording: Recording, *names: str) -> Unknown:
    """Return a frame with columns that something unknown adds to it: these, and those that the script names later."""
    assumed, is_unknown = recording.assumed, type(frame) is Unknown
    if assumed is None:
        return Unknown(doubt, recording, streaming=frame.isStreaming)
    recording.doubt(doubt)
    assumed.add([doubt.what], names)
    types = assumed.types(doubt.what)
    probe = frame.probe if is_unknown else frame
    if probe is not None:
        types = {PLACEHOLDER: "STRING", **types}
        added = {
            name: F.lit(None).cast(kind.lower()) for name, kind in types.items() if name not in probe.columns
        }
        probe = probe.withColumns(added)
    sources = (doubt.what, *(frame.sources if is_unknown else ()))
    return Unknown(doubt, recording, streaming=frame.isStreaming, probe=probe, sources=sources)


def _with_probes(value: Any) -> Any:
    """Return an argument with the probe in place of an unknown frame."""
    return value.probe if type(value) is Unknown else value


class _Columns(Absent):
    """The names of the columns of an unknown frame."""

    def __new__(cls, frame: Unknown) -> _Columns:
        """Return the stand-in for the names of a frame's columns."""
        self = super().__new__(cls, frame.doubt)
        self.__dict__["_unknown"] = frame
        return self  # type: ignore[return-value]

    def __contains__(self, item: object) -> bool:
        frame: Unknown = self.__dict__["_unknown"]
        return frame.has_column(item)

    def __iter__(self) -> Iterator[Any]:
        """Yield the names that are known by now, and the one of the column in place of the others."""
        frame: Unknown = self.__dict__["_unknown"]
        frame._recording.listed = frame.doubt
        return iter(frame.probe.columns if frame.probe is not None else [self])


class _Groups:
    """The groups of an unknown table. Any function of them returns an unknown table."""

    def __init__(self, frame: Unknown, calls: tuple[tuple[str, Any, Any], ...]) -> None:
        self._frame = frame
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*args: Any, **named: Any) -> Any:
            calls = (*self._calls, (name, args, named))
            if name in ("pivot", "cogroup"):
                return _Groups(self._frame, calls)
            return self._frame.with_probe(lambda probe: _run_calls(probe, calls))

        return call


def _run_calls(owner: Any, calls: tuple[tuple[str, Any, Any], ...]) -> Any:
    """Return the result of a chain of methods."""
    for name, args, named in calls:
        owner = getattr(owner, name)(*args, **named)
    return owner
