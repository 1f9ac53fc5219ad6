"""A stateful processor that opens the state variables declared in the spec before it sees its first row.

Executors receive this file's code with the function, so they do not need Millstream installed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark import cloudpickle
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pyspark.sql.types import StructType


class Variable(NamedTuple):
    """A state variable: `kind` is value, list or map, and `ttl` is its time to live in milliseconds, or None."""

    kind: str
    columns: StructType
    key: StructType | None
    ttl: int | None


class DeclaredProcessor(StatefulProcessor):
    """Calls a user's class that has `handleInputRows` and, optionally, Spark's other methods.

    Before its `init` is called, `handle` and each declared variable are set as its attributes.
    """

    def __init__(self, user: Any, state: Mapping[str, Variable]) -> None:
        self._user = user
        self._state = dict(state)

    def init(self, handle: Any) -> None:
        """Open the declared variables, then call the user's `init`."""
        self._user.handle = handle
        for name, variable in self._state.items():
            if variable.kind == "map":
                state = handle.getMapState(name, variable.key, variable.columns, variable.ttl)
            elif variable.kind == "list":
                state = handle.getListState(name, variable.columns, variable.ttl)
            else:
                state = handle.getValueState(name, variable.columns, variable.ttl)
            setattr(self._user, name, state)
        self._user_method("init")(handle)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803 - Spark's names
        """Process the rows of a key."""
        return _iterate(self._user.handleInputRows(key, rows, timerValues))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803
        """Process an expired timer of a key."""
        return _iterate(self._user_method("handleExpiredTimer")(key, timerValues, expiredTimerInfo))

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: N802, N803
        """Process the rows that a key had before the first batch."""
        self._user_method("handleInitialState")(key, initialState, timerValues)

    def close(self) -> None:
        """Call the user's `close` at the end of a task."""
        self._user_method("close")()

    def _user_method(self, name: str) -> Callable[..., Any]:
        """Return a method of the user's class, or one that does nothing."""
        method: Callable[..., Any] = getattr(self._user, name, _nothing)
        return method


def _nothing(*_: Any) -> Iterable[Any]:
    return ()


def _iterate(output: Iterable[Any] | None) -> Iterator[Any]:
    """Return the output of a method as an iterator. A plain `return` gives none."""
    return iter(output if output is not None else ())


cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
