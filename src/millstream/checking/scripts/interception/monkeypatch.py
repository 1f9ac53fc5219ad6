"""Replace attributes of classes and modules, and restore them afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

_ABSENT = object()


class Patches:
    """Replaces attributes of classes and modules until the block ends, also if it raises an error."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []
        self._at_exit: list[Callable[[], None]] = []

    def __enter__(self) -> Patches:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        for act in reversed(self._at_exit):
            act()
        self._at_exit.clear()
        for owner, name, before in reversed(self._before):
            if before is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
        self._before.clear()

    def after(self, act: Callable[[], None]) -> None:
        """Register a function to call when the block ends, before the attributes are restored."""
        self._at_exit.append(act)

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Replace an attribute. If the class only inherits it, the replacement is deleted at the end."""
        # Read from the class's own dictionary, so that a static method or a property is restored as such.
        self._before.append((owner, name, vars(owner).get(name, _ABSENT)))
        setattr(owner, name, value)

    def wrap(self, owner: Any, name: str, around: Callable[..., Any]) -> None:
        """Replace a method with `around(original, self, …)`."""
        original = getattr(owner, name)

        def method(*args: Any, **kwargs: Any) -> Any:
            return around(original, *args, **kwargs)

        method.__name__, method.__doc__ = name, original.__doc__
        self.set(owner, name, method)
