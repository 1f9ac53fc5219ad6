"""What the page shows of a run that goes well."""

from __future__ import annotations

import re
import time
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from millstream.dashboard.http.data_preview import to_json_value

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from page.conftest import Shown
    from page.made import Traffic
    from page.stage import Stage

# Are there pixels in the canvas that are neither empty nor the grid's?
DRAWN = """figure => {
  const canvas = figure.querySelector("canvas");
  if (!canvas) return 0;
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let coloured = 0;
  for (let at = 0; at < data.length; at += 4) {
    const most = Math.max(data[at], data[at + 1], data[at + 2]);
    const least = Math.min(data[at], data[at + 1], data[at + 2]);
    if (data[at + 3] > 128 && most - least > 60) coloured++;
  }
  return coloured;
}"""


def test_one_sentence_says_that_all_is_well(page_view: Shown) -> None:
    page = page_view.page

    expect(page.locator(".verdict")).to_have_attribute("data-level", "ok")
    expect(page.locator(".headline")).to_contain_text("All is well")
    expect(page.locator("[data-link]")).to_have_attribute("data-link", "open")
    expect(page).to_have_title("● ecommerce: running")


def test_every_source_view_query_and_sink_is_a_node_with_its_figures(page_view: Shown) -> None:
    page = page_view.page
    nodes = page_view.stage.feed.document()["graph"]["nodes"]

    assert len(nodes) == 11
    expect(page.locator("[data-node]")).to_have_count(len(nodes))
    expect(page.locator('[data-node="source.clicks"] .figures')).to_contain_text("/s")
    expect(page.locator('[data-node="query.funnel"] .figures')).to_contain_text(
        re.compile(r"/s · \d+\s% of trigger|/s · \d+\s%$")
    )
    expect(page.locator("path.edge")).to_have_count(len(page_view.stage.feed.document()["graph"]["edges"]))


def test_the_table_holds_the_figures_of_the_state(page_view: Shown) -> None:
    page = page_view.page

    batch = next(
        query["batch"] for query in page_view.stage.feed.document()["queries"] if query["name"] == "funnel"
    )
    row = page.locator('[data-query="funnel"]')
    expect(row).to_contain_text("running")
    expect(row.locator("td").nth(2)).to_have_text(str(batch))


def test_four_plots_of_the_chosen_query_are_drawn(page_view: Shown) -> None:
    page = page_view.page

    expect(page.locator("[data-plot] canvas")).to_have_count(4)
    for name in ("rates", "durations", "times", "states"):
        figure = page.locator(f'[data-plot="{name}"]')
        page.wait_for_function(f"figure => ({DRAWN})(figure) > 200", arg=figure.element_handle())


def test_the_plots_are_those_of_the_query_that_is_chosen(page_view: Shown) -> None:
    page = page_view.page

    page.locator('[data-query="purchases"] button').click()

    expect(page.locator("#plots-title")).to_have_text("purchases over time")
    expect(page.locator('[data-query="purchases"] button')).to_have_attribute("aria-pressed", "true")
    expect(page.locator("[data-topic]")).to_have_count(1)
    page.locator("#partitions").click()
    expect(page.locator("[data-partition]")).to_have_count(4)
    page.locator("#partitions").click()
    assert page.url.endswith("#purchases")


def test_figures_and_lag_move_with_a_batch(
    traffic: Traffic, stage: Stage, opened: Callable[..., Page]
) -> None:
    page = opened()
    page.locator("#partitions").click()
    end = page.locator('[data-partition="clicks/0"] td').nth(1)
    expect(end).to_have_text(re.compile(r"^[\d,]+$"))
    before = end.inner_text()
    batch = page.locator('[data-query="funnel"] td').nth(2)
    number = int(batch.inner_text())

    stage.send(*traffic.batch("funnel", time.time()))

    expect(batch).to_have_text(str(number + 1))
    expect(end).not_to_have_text(before)


def test_lag_that_grows_is_told(traffic: Traffic, stage: Stage, opened: Callable[..., Page]) -> None:
    page = opened()
    expect(page.locator("[data-lag]")).to_be_visible()
    before = int(page.locator("[data-lag]").get_attribute("data-lag") or 0)
    traffic.load = lambda _: 40.0

    for _ in range(3):
        stage.send(*traffic.batch("funnel", time.time()))
        traffic._at = {name: at - 5 for name, at in traffic._at.items()}

    page.wait_for_function(
        "before => Number(document.querySelector('[data-lag]').dataset.lag) > before + 1000", arg=before
    )


def test_messages_of_a_source_are_shown(page_view: Shown) -> None:
    page = page_view.page

    expect(page.locator(".messages tbody tr")).to_have_count(20)
    page.locator("#lag select").select_option("purchases")
    expect(page.locator(".messages")).to_contain_text("e-90400")


def test_results_are_drawn_by_window_without_set_up(page_view: Shown) -> None:
    page = page_view.page

    expect(page.locator(".rows tbody tr")).to_have_count(12)
    figure = page.locator(".drawn")
    windows = page_view.stage.looks.rows("")["rows"]
    drawn = figure.locator(".bars svg > g > rect")
    expect(drawn).to_have_count(3 * len({row[0] for row in windows}))
    # The watermark is five minutes behind: the last windows may still change.
    expect(figure.locator(".bars .unfinished").first).to_be_visible()
    assert 3 <= figure.locator(".bars .unfinished").count() <= 9
    expect(figure.locator('[aria-pressed="true"]')).to_have_text(["views", "carts", "purchases"])


@pytest.mark.usefixtures("traffic")
def test_a_plot_of_some_of_the_rows_of_a_sink_says_so(stage: Stage, opened: Callable[..., Page]) -> None:
    page = opened()
    expect(page.locator(".drawn .bars")).to_be_visible()
    expect(page.locator(".drawn .note")).to_have_count(0)

    stage.looks.truncated = True

    expect(page.locator(".drawn .note")).to_have_text(
        "Sums of a sample of 72 rows: the sink may have more at each time."
    )


@pytest.mark.usefixtures("traffic")
def test_a_cell_shows_the_number_that_the_sink_has(stage: Stage, opened: Callable[..., Page]) -> None:
    stage.looks.columns = [("id", "bigint"), ("share", "double"), ("price", "double")]
    numbers = (1234567890123456789, 0.00000045, Decimal("12345678901234567890.1234567891"))
    stage.looks.drawn = [[to_json_value(number) for number in numbers]]

    page = opened()

    expect(page.locator(".rows tbody td")).to_have_text(
        ["1234567890123456789", "4.5e-7", "12345678901234567890.1234567891"]
    )


@pytest.mark.usefixtures("traffic")
def test_the_columns_that_are_drawn_are_remembered(opened: Callable[..., Page]) -> None:
    page = opened()
    page.locator(".choices button", has_text="views").click()
    page.locator(".choices select").select_option("category")
    expect(page.locator(".drawn .keys li:not(.dim)")).to_have_count(3)

    page.reload()

    expect(page.locator('.choices [aria-pressed="true"]')).to_have_text(["carts"])
    expect(page.locator(".choices select")).to_have_value("category")


def test_dead_letters_events_findings_guarantee_and_plan_are_in_words(page_view: Shown) -> None:
    page = page_view.page

    expect(page.locator("#letters")).to_contain_text("malformed")
    expect(page.locator("#log .log li").first).to_be_visible()
    expect(page.locator("#findings")).to_contain_text("MS309")
    expect(page.locator("#guarantees")).to_contain_text("exactly-once")
    expect(page.locator("#plan")).to_contain_text("merges into delta lake/funnel")
