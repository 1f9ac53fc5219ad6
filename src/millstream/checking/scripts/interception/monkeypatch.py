"""Replace attributes of classes and modules, and restore them afterwards."""

from __future__ import annotations

import inspect
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
                if name == "__new__" and owner.__new__ is object.__new__:
                    # A class that once had a `__new__` of its own is given no arguments by the one of `object`:
                    # CPython does not restore the slot.
                    owner.__new__ = _make_without_arguments
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
        """Replace a method with `around(original, self, …)`, which gets arguments by position where it can."""
        original = getattr(owner, name)

        def method(*args: Any, **kwargs: Any) -> Any:
            if kwargs:
                args, kwargs = _by_position(original, args, kwargs)
            return around(original, *args, **kwargs)

        # Pickled by its name, as the original is: its own variables refer to the check and to the session.
        for attribute in ("__module__", "__qualname__", "__doc__"):
            setattr(method, attribute, getattr(original, attribute, None))
        method.__name__ = name
        self.set(owner, name, method)


def _make_without_arguments(cls: type, *_args: Any, **_kwargs: Any) -> Any:
    return object.__new__(cls)


def _by_position(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call, with those that the caller names in their positions.

    A replacement may therefore name its parameters as it likes. Unchanged if the function does not accept them.
    """
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):
        # The call is wrong, or a function in C has no signature.
        return args, kwargs
    return bound.args, bound.kwargs
