"""Attributes that are replaced until a block ends."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.checking.scripts.interception.monkeypatch import Patches


class Reader:
    def table(self, tableName: str, version: int = 0) -> str:  # noqa: N803 - as Spark names it
        return f"{tableName} {version}"


def around(_original: Any, _reader: Reader, name: str, *more: int) -> tuple[Any, ...]:
    return (name, *more)


def test_a_replacement_is_called_as_the_original_is() -> None:
    with Patches() as patches:
        patches.wrap(Reader, "table", around)

        assert Reader().table("t", 1) == Reader().table(tableName="t", version=1) == ("t", 1)  # type: ignore[comparison-overlap]
        with pytest.raises(TypeError, match="nme"):
            Reader().table(nme="t")  # type: ignore[call-arg]


def test_objects_of_a_class_are_made_again_as_before() -> None:
    class Topic:
        def __init__(self, name: str, partitions: int = 1) -> None:
            self.name, self.partitions = name, partitions

    with Patches() as patches:
        patches.set(Topic, "__new__", staticmethod(lambda *_args, **_kwargs: None))
        assert Topic("clicks") is None

    made = Topic("clicks", partitions=3)

    assert (type(made), made.name, made.partitions) == (Topic, "clicks", 3)
