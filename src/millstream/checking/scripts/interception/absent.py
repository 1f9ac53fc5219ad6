"""A stand-in for a value that is not known in a check, which accepts every operation of Python."""

from __future__ import annotations

import dis
import functools
import inspect
import sys
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession

from millstream.checking.scripts.interception import call_sites

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from millstream.checking.scripts.interception.recording import Doubt

# The text of a stand-in. It is a valid name in Python and in SQL, so that paths and statements built from it can be
# parsed, and it is recognised in the messages of errors.
MARK = "not_known_in_a_check"

# Makes the writer of a stream that nobody knows, from the doubt about it. The module of writers sets it.
open_writer: list[Callable[[Doubt], Any]] = []

# Opens a stream or a table of which nothing is known, from the doubt about it and `streaming`. The module of writers
# sets it.
open_frame: list[Callable[..., Any]] = []

# Makes the result of `transform` of a model that nobody knows, from the doubt about it and the frame.
add_columns: list[Callable[[Doubt, Any], Any]] = []

FOR_EACH_BATCH = "forEachBatch"
"""The method of AWS Glue's context that starts a query."""

_TEXT_METHODS = frozenset(name for name in dir(str) if not name.startswith("_"))
_SESSION = frozenset({"spark_session", "sparkSession"})
_OF_SESSION = frozenset({"readStream", "createDataFrame"})
_WAITS = ("awaitAnyTermination", "awaitTermination")
# The attribute, or the beginning of methods, by which AWS Glue's context reads a frame.
_GLUE_READER = "create_data_frame"
_OWN = frozenset({"doubt", "keys", "writeStream"})


@dataclass
class Expectations:
    """What the stand-ins of the current run are taken for."""

    are_true: bool = False
    """Whether they are true, and contain what the script looks for. A run that starts no query is repeated so."""
    decorated: set[str] = field(default_factory=set)
    """Functions that a stand-in has decorated."""
    with_arguments: set[str] = field(default_factory=set)
    """Those of them that expect arguments from their decorator."""
    decisions: dict[tuple[str, int], Doubt] = field(default_factory=dict)
    """The lines of the script's files on which a value that is not known decides how the script continues."""


expected = Expectations()


def note_decision(doubt: Doubt, frame: FrameType) -> None:
    """Note that a value that is not known decides what a frame does next, unless a library asks."""
    if call_sites.is_user_file(frame.f_code.co_filename):
        expected.decisions.setdefault((frame.f_code.co_filename, frame.f_lineno), doubt)


def as_if_with_rows(result: Any, doubt: Doubt) -> Any:
    """Return what an action on a frame without rows returns for one row that is not known.

    `result` is that of the action: no rows, no first row, the number 0, or True of `isEmpty`. Any other is returned
    as it is.
    """
    match result:
        case bool():
            return False
        case 0:
            return 1
        case None:
            return Absent(doubt)
        case []:
            return [Absent(doubt)]
        case _:
            return result


class AbsentError(Exception):
    """A stand-in for an exception class of a missing module."""


class AbsentBase:
    """A stand-in for a base class. Its attributes that a subclass does not define are not known."""

    _doubt: Doubt

    def __init__(self, *_args: Any, **_named: Any) -> None:
        """Accept any arguments."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(type(self)._doubt)


class Absent(str):
    """A stand-in for a missing module, class or value. Whatever is computed from it is not known either.

    It is a text, so that functions written in C, Java and Python accept it as a path, a name or an option.
    """

    _doubt: Doubt
    _frame: Any

    def __new__(cls, doubt: Doubt, frame: Any = None) -> Absent:
        """Return the stand-in. `frame` is the unknown table that its calls return, if there is one."""
        self = super().__new__(cls, MARK)
        self.__dict__.update(_doubt=doubt, _frame=frame)
        return self

    @property
    def doubt(self) -> Doubt:
        """The missing value, and the reason."""
        doubt: Doubt = self.__dict__["_doubt"]
        return doubt

    def keys(self) -> list[str]:
        """Return no keys, so that `**` passes nothing."""
        return []

    @property
    def writeStream(self) -> Any:  # noqa: N802 - Spark's name
        """The writer of an unknown stream."""
        return open_writer[0](self.doubt)

    def __getattribute__(self, name: str) -> Any:
        if name in _TEXT_METHODS:
            # A method of text would compute with the stand-in's own text.
            return self
        return super().__getattribute__(name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and name.endswith("_"):
            raise AttributeError(name)
        if name.endswith(("Error", "Exception")):
            return AbsentError
        if name in _SESSION:
            # A context of a cloud's library holds the session.
            return SparkSession.getActiveSession() or self
        if name == "transform":
            return partial(_transform, self)
        if name in _OF_SESSION and (session := SparkSession.getActiveSession()) is not None:
            # Only a session has these, and a library may have made it.
            return getattr(session, name)
        if name in _WAITS and (session := SparkSession.getActiveSession()) is not None:
            # Of the queries of such a session, or of one that a library has started.
            return session.streams.awaitAnyTermination if name == _WAITS[0] else partial(_wait, session)
        if name.startswith(_GLUE_READER):
            return _GlueReader(self.doubt)
        return _for_each_batch if name == FOR_EACH_BATCH else self

    def __call__(self, *args: Any, **named: Any) -> Any:  # noqa: D102 - Python's own name
        # A decorator returns its function, and a wrapper of a session builder returns that builder.
        if len(args) == 1 and not named and _is_function(args[0]):
            name = getattr(args[0], "__qualname__", "")
            expected.decorated.add(name)
            return _with_arguments(args[0], self) if name in expected.with_arguments else args[0]
        builder = next((value for value in (*args, *named.values()) if _is_builder(value)), None)
        frame = self.__dict__["_frame"]
        return builder if builder is not None else frame if frame is not None else self

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        if any(base is AbsentBase or isinstance(base, type) for base in bases):
            return ()
        return (type("AbsentBase", (AbsentBase,), {"_doubt": self.doubt}),)

    def __iter__(self) -> Iterator[Any]:
        """Yield as many stand-ins as the caller unpacks, and one to a loop, so that its body is seen."""
        count = _values_unpacked(sys._getframe(1))
        if count is None:
            note_decision(self.doubt, sys._getframe(1))
        return iter([self] * (1 if count is None else count))

    def __getitem__(self, item: Any) -> Any:
        return self

    def __setitem__(self, item: Any, value: Any) -> None:
        """Ignore the value."""

    def __delitem__(self, item: Any) -> None:
        """Ignore the item."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Ignore the value."""

    def __contains__(self, item: object) -> bool:
        note_decision(self.doubt, sys._getframe(1))
        return expected.are_true

    def __len__(self) -> int:
        note_decision(self.doubt, sys._getframe(1))
        return 0

    def __bool__(self) -> bool:
        note_decision(self.doubt, sys._getframe(1))
        return expected.are_true

    def __int__(self) -> int:
        return 0

    __index__ = __int__

    def __float__(self) -> float:
        return 0.0

    def __str__(self) -> str:
        return MARK

    __repr__ = __str__

    def __format__(self, _spec: str) -> str:
        return MARK

    def __hash__(self) -> int:
        return hash(MARK)

    def __eq__(self, other: object) -> bool:
        note_decision(self.doubt, sys._getframe(1))
        return isinstance(other, Absent)

    def __ne__(self, other: object) -> bool:
        note_decision(self.doubt, sys._getframe(1))
        return not isinstance(other, Absent)

    def _compare(self, _other: object) -> bool:
        note_decision(self.doubt, sys._getframe(1))
        return False

    __lt__ = __le__ = __gt__ = __ge__ = _compare

    def __add__(self, other: Any) -> Any:
        return f"{MARK}{other}" if isinstance(other, str) and not isinstance(other, Absent) else self

    def __radd__(self, other: Any) -> Any:
        return f"{other}{MARK}" if isinstance(other, str) and not isinstance(other, Absent) else self

    def _compute(self, *_others: object) -> Any:
        return self

    __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = (
        _compute
    )
    __mod__ = __rmod__ = __pow__ = __rpow__ = __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = (
        _compute
    )
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __neg__ = __pos__ = __abs__ = __invert__ = _compute
    __round__ = __enter__ = __copy__ = __deepcopy__ = _compute

    def __divmod__(self, _other: object) -> tuple[Any, Any]:
        return self, self

    def __exit__(self, *raised: object) -> None:
        """Do not handle the error."""

    def __instancecheck__(self, _instance: object) -> bool:
        return False

    def __subclasscheck__(self, _kind: type) -> bool:
        return False

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (MARK,)


class _GlueReader:
    """`create_data_frame` of AWS Glue's context: itself and its methods return a stream."""

    def __init__(self, doubt: Doubt) -> None:
        self._doubt = doubt

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_args: Any, **_named: Any) -> Any:
        return open_frame[0](self._doubt, streaming=True)


def _with_arguments(function: Any, value: Absent) -> Any:
    """Return a function that a decorator calls: the arguments that it gives are not known."""

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        signature = inspect.signature(function)
        bound = signature.bind_partial(*args, **named).arguments
        lacking = [
            name
            for name, parameter in signature.parameters.items()
            if name not in bound
            and parameter.default is parameter.empty
            and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        ]
        return function(*args, **named, **dict.fromkeys(lacking, value))

    return call


def _wait(session: SparkSession, *_args: Any, **_named: Any) -> Any:
    """Wait for a query that is not known: the script does not end before it."""
    return session.streams.awaitAnyTermination(0)


def _transform(model: Absent, *args: Any, **named: Any) -> Any:
    """Return a frame with further columns, as the models of Spark ML do."""
    frame = next((value for value in (*args, *named.values()) if isinstance(value, DataFrame)), None)
    if frame is not None:
        return add_columns[0](model.doubt, frame)
    # A frame of which nothing is known calls the function that it is given.
    return model if args and _is_function(args[0]) else model(*args, **named)


def _for_each_batch(frame: Any, batch_function: Any, options: dict[str, Any]) -> None:
    """Start a query as `GlueContext.forEachBatch` of AWS Glue does, and wait for it.

    Glue persists each batch, unless its option `persistDataFrame` is false.
    """
    settings = {"persistDataFrame": "true", **options}
    interval = settings.pop("windowSize", MARK)
    writer = frame.writeStream.foreachBatch(batch_function).trigger(processingTime=interval)
    writer.options(**settings).start().awaitTermination()


def has_mark(value: object) -> bool:
    """Return whether a value is not known, or a text that is built from one that is not known."""
    return isinstance(value, str) and str.__contains__(value, MARK)


def _is_function(value: object) -> bool:
    return callable(value) and not isinstance(value, Absent)


def _is_builder(value: object) -> bool:
    return isinstance(value, SparkSession.Builder)


def _values_unpacked(frame: FrameType) -> int | None:
    """Return how many values the running instruction of a frame unpacks; None for every other instruction."""
    for instruction in dis.get_instructions(frame.f_code):
        if instruction.offset == frame.f_lasti:
            if instruction.opname == "UNPACK_SEQUENCE":
                return int(instruction.arg or 0)
            if instruction.opname == "UNPACK_EX":
                argument = int(instruction.arg or 0)
                return (argument & 0xFF) + (argument >> 8)
    return None
