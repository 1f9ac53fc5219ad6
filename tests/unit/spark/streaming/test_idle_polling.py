"""How often the queries of a run ask for news."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.spark.streaming.idle_polling import SETTING, poll_less_often


class Session:
    """A session with settings."""

    def __init__(self, values: dict[str, str]) -> None:
        self.values = values
        self.conf: Any = self

    def get(self, key: str, default: str | None) -> str | None:
        return self.values.get(key, default)

    def set(self, key: str, value: str) -> None:
        self.values[key] = value

    def unset(self, key: str) -> None:
        del self.values[key]


@pytest.mark.parametrize(("queries", "delay"), [(1, "50ms"), (2, "100ms"), (20, "1000ms"), (90, "1000ms")])
def test_many_queries_ask_less_often_each(queries: int, delay: str) -> None:
    session = Session({})
    with poll_less_often(session, {}, queries):  # type: ignore[arg-type]
        assert session.values == {SETTING: delay}
    assert session.values == {}


def test_what_the_spec_sets_stays() -> None:
    session = Session({SETTING: "1s"})
    with poll_less_often(session, {SETTING: "1s"}, 20):  # type: ignore[arg-type]
        assert session.values == {SETTING: "1s"}


def test_the_session_gets_its_own_delay_back() -> None:
    session = Session({SETTING: "1s"})
    with poll_less_often(session, {}, 1):  # type: ignore[arg-type]
        assert session.values == {SETTING: "50ms"}
    assert session.values == {SETTING: "1s"}
