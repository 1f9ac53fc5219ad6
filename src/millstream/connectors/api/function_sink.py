"""Base class of sinks that pass rows to a user's function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, PrivateAttr

from millstream.connectors.api.sink import Sink
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Mapping

REFERENCE = r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$"
"""Format of a function in a spec: `module:name`."""


class FunctionSink(Sink):
    """A sink that calls a user's function."""

    main = "function"
    modes = frozenset(OutputMode)

    function: str = Field(pattern=REFERENCE, examples=["alerts:send"])
    """Function as `module:name`, relative to the spec's folder."""

    _function: Callable[..., Any] | None = PrivateAttr(None)

    def functions(self) -> Mapping[str, str]:
        """Return the function's name."""
        return {"function": self.function}

    def bound(self, loaded: Mapping[str, Callable[..., Any]]) -> Self:
        """Return the sink with its function."""
        copy = self.model_copy()
        copy._function = loaded["function"]  # noqa: SLF001 - a copy of this sink
        return copy

    @property
    def called(self) -> Callable[..., Any]:
        """The function itself."""
        assert self._function is not None, "bound comes before writer"
        return self._function

    def target(self) -> str:
        """Return the function's name."""
        return self.function
