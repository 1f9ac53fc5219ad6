"""What sinks share that hand rows to a function of the user: its name in the spec, and the function itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pydantic import Field, PrivateAttr

from millstream.connectors.sink import Sink
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Mapping

REFERENCE = r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$"
"""How a spec names a function: `module:name`."""


class FunctionSink(Sink):
    """A sink that is a function of the user."""

    main = "function"
    modes = frozenset(OutputMode)

    function: str = Field(pattern=REFERENCE, examples=["alerts:send"])
    """The function as `module:name`, found from the spec's folder."""

    _function: Callable[..., Any] | None = PrivateAttr(None)

    def functions(self) -> Mapping[str, str]:
        """The function."""
        return {"function": self.function}

    def bound(self, found: Mapping[str, Callable[..., Any]]) -> Sink:
        """The sink with its function."""
        made = self.model_copy()
        made._function = found["function"]  # noqa: SLF001 - a copy of this sink
        return made

    @property
    def called(self) -> Callable[..., Any]:
        """The function itself."""
        assert self._function is not None, "bound comes before writer"
        return self._function

    def target(self) -> str:
        """The function."""
        return self.function
