"""Put something in another's place for a while, and put it back in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

_ABSENT = object()


class Patches:
    """Attributes of classes and modules that are replaced until the block ends, however it ends."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> Patches:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        for owner, name, before in reversed(self._before):
            if before is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
        self._before.clear()

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Replace an attribute; one that a class only inherits is taken away again in the end."""
        # From the class's own dictionary: a static method or a property must come back as what it was.
        self._before.append((owner, name, vars(owner).get(name, _ABSENT)))
        setattr(owner, name, value)

    def wrap(self, owner: Any, name: str, around: Callable[..., Any]) -> None:
        """Replace a method by `around(original, self, …)`."""
        original = getattr(owner, name)

        def method(*args: Any, **named: Any) -> Any:
            return around(original, *args, **named)

        method.__name__, method.__doc__ = name, original.__doc__
        self.set(owner, name, method)
