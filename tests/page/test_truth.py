"""The page's own sentence and figures against what is true: batches that run, offsets of the broker, gaps in time."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from millstream.engine.events.event_bus import Event
from page.made import PARTITIONS, Traffic, failed_run, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from page.stage import Stage


def observe(stage: Stage, ends: int, at: float) -> None:
    """The broker says where each partition of the clicks ends."""
    stage.feed.observe_ends("clicks", {"clicks": dict.fromkeys(range(PARTITIONS), ends)}, at)


@pytest.mark.usefixtures("traffic")
def test_records_that_arrive_during_a_batch_are_behind_and_the_batch_is_news(
    stage: Stage, opened: Callable[..., Page]
) -> None:
    page = opened()
    expect(page.locator(".headline")).to_have_text("● All is well")
    now = time.time()
    # However long a loaded machine takes to draw the page, the batch has run for 41 seconds.
    stage.feed.clock = lambda: now
    number = stage.feed.document()["queries"][0]["batch"]
    assert number is not None

    stage.send(
        Event(
            "batch_started", "funnel", {"batch": number + 1, "sinks": ["delta:lake/funnel"]}, text(now - 41)
        )
    )
    observe(stage, 10_000_000, now)

    expect(page.locator(".headline")).to_have_text("▲ funnel is slower than its trigger")
    expect(page.locator(".verdict .detail")).to_contain_text(
        "a batch has run for 41 s, and the trigger is 5 s; delta:lake/funnel not yet"
    )
    expect(page.locator('[data-kpi="behind"] .kpi-value')).to_contain_text("M")
    expect(page).to_have_title("▲ ecommerce: slow")
    expect(page.locator("link[rel=icon]")).to_have_attribute("href", re.compile("c77700"))
    expect(page.locator('[data-node="query.funnel"] .queue rect')).to_have_count(5)


@pytest.mark.usefixtures("traffic")
def test_lag_that_is_old_is_shown_with_its_age(stage: Stage, opened: Callable[..., Page]) -> None:
    stage.send(Event("idle", "funnel"), Event("idle", "purchases"))
    observe(stage, 100, time.time() - 60)
    page = opened()

    expect(page.locator('[data-kpi="behind"] .kpi-note')).to_contain_text("ago")
    expect(page.locator(".verdict")).not_to_contain_text("all records are read")


@pytest.mark.usefixtures("traffic")
def test_queries_in_which_nothing_happens_are_no_reason_to_warn(
    stage: Stage, opened: Callable[..., Page]
) -> None:
    now = time.time()
    stage.feed.clock = lambda: now + 60
    stage.history([failed_run("purchases", now), Event("idle", "funnel", {}, text(now + 50))])

    page = opened()

    expect(page.locator('[data-query="funnel"]')).to_contain_text("idle")
    for name in ("freshness", "load"):
        expect(page.locator(f'[data-kpi="{name}"]')).to_have_class("kpi off")


@pytest.mark.parametrize(("behind", "level"), [(999, "dim"), (1000, "warn")])
def test_a_growing_lag_is_a_warning_from_a_thousand_records_on(
    stage: Stage, opened: Callable[..., Page], behind: int, level: str
) -> None:
    now, batches = time.time(), 12
    traffic = Traffic(began=now - 70, queries={"funnel": ["clicks"]})
    stage.history(traffic.opening())
    for number in range(1, batches + 1):
        offsets = {
            "endOffset": {"clicks": {"0": 500 * number}},
            "latestOffset": {"clicks": {"0": 500 * number + behind * number // batches}},
        }
        sources = [{"description": "KafkaV2[Subscribe[clicks]]", **offsets, "numInputRows": 500}]
        stage.history(traffic.batch("funnel", now - 5 * (batches - number) - 1, sources=sources))
    page = opened()

    growing = page.locator('[data-topic="clicks"] td').last
    expect(growing).to_contain_text("▲")
    expect(growing).to_have_class(level)


def test_the_phases_of_a_start_are_named(stage: Stage, opened: Callable[..., Page]) -> None:
    now = time.time()
    stage.feed.clock = lambda: now
    opening = list(Traffic(began=now - 30).opening())
    stage.history(opening[:1])
    page = opened()
    stage.send(Event("phase", "", {"text": "starting Spark"}, text(now - 12)))

    expect(page.locator(".headline")).to_have_text("◐ The run is starting")
    expect(page.locator(".verdict .detail")).to_contain_text("starting Spark, 12 s so far")
    stage.send(*opening[1:], Event("batch_started", "funnel", {"batch": 0, "sinks": []}, text(now - 9)))
    expect(page.locator(".verdict .detail")).to_contain_text("funnel: first batch, 9.0 s so far")
    expect(page.locator(".verdict")).to_have_attribute("data-level", "start")


def test_lines_are_broken_where_nothing_is_known(stage: Stage, opened: Callable[..., Page]) -> None:
    now = time.time()
    here = Traffic(began=now - 800)
    stage.history(here.until(now - 600))
    at = now - 60
    while at < now - 1:
        stage.history(here.batch("funnel", at))
        at += 5
    page = opened()
    page.locator('[data-query="funnel"] .choose').click()

    expect(page.locator('[data-plot="rates"]')).to_have_attribute("data-pieces", "2")
    expect(page.locator('[data-plot="states"]')).to_have_attribute("data-pieces", "2")


def test_the_beginning_of_a_long_history_stays_while_it_grows(
    stage: Stage, opened: Callable[..., Page]
) -> None:
    now = time.time()
    traffic = Traffic(began=now - 4000, queries={"funnel": ["clicks"]}, every=1.0)
    stage.history(traffic.opening())
    # Nothing is known of the minute and a half between the first batches and the others.
    for at in (*range(-3990, -3980), *range(-3900, -2100)):
        stage.history(traffic.batch("funnel", now + at))
    page = opened()
    figure = page.locator('[data-plot="rates"]')
    page.get_by_role("button", name="6 h", exact=True).click()
    expect(figure).to_have_attribute("data-pieces", "2")

    for at in range(-2100, -110):
        stage.send(*traffic.batch("funnel", now + at))
    stage.send(*traffic.batch("funnel", now - 110, input_rate=7777.0))

    expect(figure.locator(".key-value").first).to_have_text(re.compile(r"7\.78\sk/s"))
    assert figure.get_attribute("data-pieces") == "2"


@pytest.mark.usefixtures("traffic")
def test_rows_are_seen_to_flow_unless_motion_is_unwanted(opened: Callable[..., Page]) -> None:
    page = opened()
    expect(page.locator("[data-node]").first).to_be_visible()
    expect(page.locator(".flow i")).to_have_count(0)

    page.emulate_media(reduced_motion="no-preference")
    page.reload()

    expect(page.locator(".flow i").first).to_be_attached()
    assert (
        page.evaluate("document.getAnimations().filter(one => one.effect.target.matches('.flow i')).length")
        > 5
    )


@pytest.mark.usefixtures("traffic")
def test_an_action_is_asked_for_twice_and_its_answer_shown(stage: Stage, opened: Callable[..., Page]) -> None:
    asked: list[str] = []
    stage.offer(asked)
    page = opened()
    page.locator("#actions").click()
    restart = page.locator('[data-action="restart"]')
    restart.get_by_role("combobox").select_option("purchases")

    restart.get_by_role("button", name="Restart purchases …").click()
    assert asked == []
    restart.get_by_role("button", name="Yes, restart purchases").click()

    expect(page.locator("dialog [role=status]")).to_have_text(
        "purchases restarts after its batch in progress."
    )
    assert asked == ["restart purchases"]


@pytest.mark.usefixtures("traffic")
def test_a_phone_shows_a_card_for_each_query_and_the_whole_graph(opened: Callable[..., Page]) -> None:
    page = opened(width=390, height=844)

    expect(page.locator("#queries thead")).to_be_hidden()
    expect(page.locator('[data-query="funnel"] [data-label="behind"]')).to_be_visible()
    graph = page.locator(".graph").bounding_box()
    assert graph is not None
    for node in page.locator("[data-node] .box").all():
        box = node.bounding_box()
        assert box is not None
        assert graph["x"] <= box["x"]
        assert box["x"] + box["width"] <= graph["x"] + graph["width"]
