"""The page of a run that is over, and a server whose stream cannot go on after the state that it gave."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from page.made import Traffic

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest
    from playwright.sync_api import Page

    from page.stage import Stage


def test_the_page_of_a_past_run_listens_once_it_has_the_state(
    stage: Stage, opened: Callable[..., Page]
) -> None:
    began = time.time() - 600
    for number, event in enumerate(Traffic(began=began).until(began + 300), 1):
        if event.event == "described":
            stage.feed.folded.run["started"] = event.at
        stage.feed.replay_event(event, number)
    stage.feed.folded.run |= {"ended": stage.feed.folded.log[-1]["at"], "live": False}

    page = opened()

    expect(page.locator(".link")).to_have_attribute("data-link", "open")
    expect(page.locator(".link")).to_have_text("run ended")


def test_a_server_that_cannot_go_on_after_its_state_is_asked_less_and_less_often(
    stage: Stage, opened: Callable[..., Page], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []
    enough = threading.Event()

    def where(_: str | None) -> None:
        asked.append(time.monotonic())
        if len(asked) == 4:
            enough.set()

    stage.history(Traffic(began=time.time() - 60).until(time.time()))
    monkeypatch.setattr(stage.feed, "where", where)

    page = opened()

    assert enough.wait(60)
    # At once, after half a second, after a second.
    assert asked[3] - asked[1] > 1.4
    expect(page.locator(".outage")).to_be_visible()
