"""A processor whose state the spec declares: opened by its name before the processor sees its first row.

Executors are given this file's code with the function, and need no Millstream of their own.
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
    """A state variable: `kind` is value, list or map; a time to live in milliseconds, or none."""

    kind: str
    columns: StructType
    key: StructType | None
    ttl: int | None


class Declared(StatefulProcessor):
    """Calls a class of the user's that has `handleInputRows` and, where it needs them, Spark's other methods.

    Before its `init`, `handle` and each declared variable are attributes of it.
    """

    def __init__(self, user: Any, state: Mapping[str, Variable]) -> None:
        self._user = user
        self._state = dict(state)

    def init(self, handle: Any) -> None:
        """Open what is declared, then let the user's class do its own."""
        self._user.handle = handle
        for name, one in self._state.items():
            if one.kind == "map":
                opened = handle.getMapState(name, one.key, one.columns, one.ttl)
            elif one.kind == "list":
                opened = handle.getListState(name, one.columns, one.ttl)
            else:
                opened = handle.getValueState(name, one.columns, one.ttl)
            setattr(self._user, name, opened)
        self._own("init")(handle)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803 - Spark's names
        """The rows of a key."""
        return _each(self._user.handleInputRows(key, rows, timerValues))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803
        """A timer of a key."""
        return _each(self._own("handleExpiredTimer")(key, timerValues, expiredTimerInfo))

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: N802, N803
        """The rows that a key had before the first batch."""
        self._own("handleInitialState")(key, initialState, timerValues)

    def close(self) -> None:
        """The end of a task."""
        self._own("close")()

    def _own(self, name: str) -> Callable[..., Any]:
        """A method of the user's class, or one that does nothing."""
        found: Callable[..., Any] = getattr(self._user, name, _nothing)
        return found


def _nothing(*_: Any) -> Iterable[Any]:
    return ()


def _each(given: Iterable[Any] | None) -> Iterator[Any]:
    """What a method gave back, a plain `return` included."""
    return iter(given if given is not None else ())


cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
