"""What the page says of a backlog: how fast records arrive, how fast they are read, and when all are."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from page.made import Traffic, failed_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from page.stage import Stage


def ask_broker(stage: Stage, traffic: Traffic, at: float) -> None:
    """Do what the page does every three seconds: ask where each topic ends."""
    for topic in ("clicks", "cart_events", "purchases"):
        ends = traffic._latest(topic, at, peek=True)
        stage.feed.observe_ends(topic, {topic: dict(enumerate(map(int, ends)))}, at)


@pytest.fixture
def backlog(stage: Stage) -> None:
    """Two minutes with a burst at their beginning, which is being read since."""
    end = time.time()
    traffic = Traffic(end - 120, load=lambda second: 5.0 if 10 < second < 60 else 1.0)
    for event in traffic.opening():
        stage.feed.fold(event)
    for at in (*range(int(end) - 115, int(end) - 2, 5), end):
        for query in traffic.queries:
            for event in traffic.batch(query, at):
                stage.feed.fold(event)
        ask_broker(stage, traffic, at)
    # However long a loaded machine takes to draw the page, its figures stay current.
    stage.feed.clock = lambda: end


@pytest.mark.usefixtures("backlog")
def test_a_backlog_that_shrinks_has_its_rates_and_an_estimate(opened: Callable[..., Page]) -> None:
    page = opened(width=1440)

    estimate = re.compile(r"caught up in about \d+ min$")
    expect(page.locator(".headline")).to_contain_text("Catching up")
    expect(page.locator(".detail").first).to_have_text(estimate)
    expect(page.locator('[data-kpi="behind"] .kpi-note')).to_have_text(estimate)
    expect(page.locator("#lag .panel-aside")).to_contain_text(
        re.compile(r"records behind, caught up in about")
    )
    expect(page.locator('[data-node="source.clicks"] .figures')).to_contain_text(
        re.compile(r"^\d+/s arrive · .*behind$")
    )
    arriving, read = (page.locator('[data-topic="clicks"] td').nth(column) for column in (0, 1))
    expect(arriving).to_have_text(re.compile(r"^\d+/s$"))
    expect(read).to_have_text(re.compile(r"/s$"))


@pytest.mark.usefixtures("backlog")
def test_figures_that_are_no_longer_current_give_no_estimate(
    stage: Stage, opened: Callable[..., Page]
) -> None:
    page = opened()
    expect(page.locator('[data-kpi="behind"] .kpi-note')).to_contain_text("caught up in about")

    # No batch is committed, and the broker does not answer.
    now = stage.feed.clock() + 25
    stage.feed.clock = lambda: now

    expect(page.locator('[data-kpi="behind"] .kpi-note')).to_contain_text("ago")

    expect(page.locator('[data-node="source.purchases"] .figures')).not_to_contain_text("arrive")
    expect(page.get_by_text("caught up in about")).to_have_count(0)
    expect(page.locator('[data-topic="clicks"] td').first).to_have_text("\N{EN DASH}")


WHOLE = """headers => {
  const edge = document.querySelector("#results .rest").getBoundingClientRect().right;
  return headers.filter(header => {
    const box = header.getBoundingClientRect();
    const words = document.createRange();
    words.selectNodeContents(header);
    const text = words.getBoundingClientRect();
    return box.left < edge - 1 && (text.right > edge + 1 || text.right > box.right + 1 || text.left < box.left - 1);
  }).map(header => header.textContent);
}"""
COLUMNS = [
    ("event_id", "string"),
    ("user_id", "string"),
    ("purchase_count_of_day", "bigint"),
    ("amount", "double"),
    ("event_time", "timestamp"),
    ("internationalisation", "string"),
    ("unit_price", "double"),
    ("discount", "double"),
    ("category", "string"),
]


@pytest.mark.usefixtures("traffic")
@pytest.mark.parametrize("width", [390, 1440, 1920])
@pytest.mark.parametrize("columns", [2, 5, 9])
def test_no_name_of_a_result_column_is_cut(
    stage: Stage, opened: Callable[..., Page], width: int, columns: int
) -> None:
    stage.looks.columns = COLUMNS[:columns]
    values: dict[str, Any] = {
        "string": "8f14e45f-ceea-467f-a0e6-3a1b6d2c9b71",
        "bigint": 4071,
        "double": 24.5,
    }
    stage.looks.drawn = [[values.get(kind, "2026-03-01T12:00:00.000Z") for _, kind in COLUMNS[:columns]]] * 9

    page = opened(width=width)

    expect(page.locator(".rows thead th")).to_have_count(columns)
    page.locator(".rows thead th").first.scroll_into_view_if_needed()
    assert page.locator(".rows thead th").evaluate_all(WHOLE) == []


# Names of nodes that a bar of what waits lies on.
COVERED = """bars => [...document.querySelectorAll('.node .box')].filter(box => {
    const area = box.getBoundingClientRect();
    return bars.some(bar => {
        const own = bar.getBoundingClientRect();
        return own.left < area.right && own.right > area.left && own.top < area.bottom && own.bottom > area.top;
    });
}).map(box => box.closest('.node').dataset.node)"""


@pytest.mark.usefixtures("backlog")
@pytest.mark.parametrize("width", [390, 1440])
def test_bars_of_what_waits_cover_no_node(stage: Stage, opened: Callable[..., Page], width: int) -> None:
    page = opened(width=width)
    for query in ("funnel", "purchases"):
        stage.send(failed_run(query, time.time()))

    bars = page.locator(".queue rect")
    expect(bars.nth(3)).to_be_attached()
    assert bars.evaluate_all(COVERED) == []
