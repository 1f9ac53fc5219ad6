"""Which batches are interpreted, and what happens to the settings that a session had before."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.spark.streaming.code_generation import (
    FACTORY,
    FEW_ROWS,
    INTERPRETED,
    WHOLE_STAGE,
    choose_code_generation,
)


class Settings:
    """The settings of a session."""

    def __init__(self, **before: str) -> None:
        self.values = dict(before)
        self.conf = self

    def get(self, key: str, default: str | None) -> str | None:
        return self.values.get(key, default)

    def set(self, key: str, value: str) -> None:
        self.values[key] = value

    def unset(self, key: str) -> None:
        self.values.pop(key, None)


def followed(session: Any, *rows: int) -> list[bool]:
    """Whether each batch changed the way of the next one."""
    generation = choose_code_generation({})
    return [generation.follow(session, count) for count in rows]


def test_a_batch_after_a_small_one_is_interpreted() -> None:
    session = Settings()
    assert followed(session, FEW_ROWS) == [True]
    assert session.values == INTERPRETED


def test_a_batch_after_a_large_one_has_generated_code_and_the_settings_of_before() -> None:
    session = Settings(**{FACTORY: "CODEGEN_ONLY"})
    assert followed(session, 0, FEW_ROWS + 1) == [True, True]
    assert session.values == {FACTORY: "CODEGEN_ONLY"}


def test_settings_are_written_only_when_the_way_changes() -> None:
    session = Settings()
    assert followed(session, FEW_ROWS + 1, 1, 2, 3, FEW_ROWS + 1) == [False, True, False, False, True]
    assert session.values == {}


@pytest.mark.parametrize("key", [WHOLE_STAGE, FACTORY])
def test_a_spec_that_chooses_is_left_alone_and_its_small_batches_are_known(key: str) -> None:
    session, generation = Settings(), choose_code_generation({key: "true"})
    assert not generation.follow(session, 1)
    assert (generation.is_small, session.values) == (True, {})
    generation.follow(session, FEW_ROWS + 1)
    assert not generation.is_small
