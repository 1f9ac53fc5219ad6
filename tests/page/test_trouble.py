"""What the page tells when something is wrong: in the run, in the connection, in what a record holds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from millstream.engine.events.event_bus import Event
from page.made import Traffic, failed_run, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from page.stage import Stage

# What somebody may put into a topic, a key, a name or an error to be run by the page.
HOSTILE = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"


@pytest.mark.usefixtures("traffic")
def test_a_failed_query_turns_red_at_once_and_names_the_record(
    stage: Stage, opened: Callable[..., Page]
) -> None:
    page = opened()
    expect(page.locator(".verdict")).to_have_attribute("data-level", "ok")

    stage.send(failed_run("purchases", time.time()))

    expect(page.locator(".verdict")).to_have_attribute("data-level", "bad")
    expect(page.locator(".headline")).to_have_text("✕ purchases has failed")
    expect(page.locator(".verdict .for")).to_contain_text("since")
    expect(page.locator('[data-failure="purchases"]')).to_contain_text(
        "topic purchases, partition 1, offset 4071"
    )
    expect(page.locator('[data-failure="purchases"]')).to_contain_text(
        "correct the code that reads these records"
    )
    expect(page.locator('[data-query="purchases"]')).to_contain_text("failed")
    node = page.locator('[data-node="query.purchases"] .box')
    red = node.evaluate("box => getComputedStyle(box).stroke")
    assert red == page.locator(".headline").evaluate("line => getComputedStyle(line).color")
    expect(page).to_have_title("✕ ecommerce: failed")


@pytest.mark.usefixtures("traffic")
def test_a_failed_query_says_that_the_run_ends_and_that_there_are_no_more_actions(
    stage: Stage, opened: Callable[..., Page]
) -> None:
    stage.offer([])
    page = opened()
    expect(page.locator("#actions")).to_be_visible()

    stage.send(failed_run("purchases", time.time()))

    run = page.locator("[data-failure] [data-run]")
    expect(run).to_contain_text("is ending: the other queries finish and commit their batches")
    expect(run).to_contain_text("there are no more actions")
    expect(page.locator("#actions")).to_have_count(0)
    stage.send(Event("run_stopped", "", {"exit_code": 1}))
    expect(run).to_have_text("has ended; start it again with: millstream run")


@pytest.mark.usefixtures("traffic")
def test_several_records_that_fail_together_are_called_records(
    stage: Stage, opened: Callable[..., Page]
) -> None:
    stage.history([failed_run("purchases", time.time(), value=None, last=4075)])
    page = opened()

    terms = page.locator('[data-failure="purchases"] dt')
    expect(terms).to_have_text(["purchases", "records", "fix", "the run"])
    expect(page.locator('[data-failure="purchases"]')).to_contain_text("offsets 4071 to 4075")


@pytest.mark.usefixtures("traffic")
def test_a_failed_query_has_no_rate_in_the_graph(stage: Stage, opened: Callable[..., Page]) -> None:
    now = time.time()
    # The other rates stay current.
    stage.feed.clock = lambda: now
    page = opened()
    clicks, sink = (
        page.locator('[data-node="source.clicks"] .figures'),
        page.locator('[data-node="sink.funnel.0"] .figures'),
    )
    expect(clicks).to_contain_text("/s")

    stage.send(failed_run("funnel", now))

    expect(clicks).not_to_contain_text("/s")
    expect(clicks).to_contain_text("kafka clicks")
    expect(sink).to_have_text("0/s")
    expect(page.locator('[data-node="source.purchases"] .figures')).to_contain_text("/s")


@pytest.mark.usefixtures("traffic")
def test_the_other_queries_that_are_not_well_are_named_beside_the_worst(
    stage: Stage, opened: Callable[..., Page]
) -> None:
    stage.history([failed_run("purchases", time.time())])
    page = opened()

    stage.send(Event("retry", "funnel", {"reason": "delta refused", "wait_seconds": 5.0, "failures": 1}))

    expect(page.locator(".headline")).to_contain_text("purchases has failed")
    expect(page.locator(".also")).to_have_text("also: funnel retrying")


def test_a_query_without_progress_is_told_as_stalled_and_since_when(
    stage: Stage, opened: Callable[..., Page]
) -> None:
    now = time.time()
    traffic = Traffic(began=now - 400, load=lambda _: 20.0)
    stage.history(traffic.until(now - 95))
    page = opened()

    expect(page.locator(".headline")).to_contain_text("is stalled")
    expect(page.locator(".verdict")).to_have_attribute("data-level", "bad")
    expect(page.locator('[data-query="funnel"]')).to_contain_text("stalled")


@pytest.mark.usefixtures("traffic")
def test_an_outage_is_a_warning_with_its_reason(stage: Stage, opened: Callable[..., Page]) -> None:
    page = opened()
    refusal = "postgres purchases: connection refused"

    stage.send(Event("retry", "purchases", {"reason": refusal, "wait_seconds": 5.0, "failures": 1}))

    expect(page.locator(".verdict")).to_have_attribute("data-level", "warn")
    expect(page.locator(".headline")).to_contain_text("purchases is retrying")
    expect(page.locator(".detail")).to_contain_text("connection refused")


def test_a_lost_connection_is_told_mended_and_the_gap_filled(
    traffic: Traffic, stage: Stage, opened: Callable[..., Page]
) -> None:
    page = opened(lossy=True)
    link = page.locator("[data-link]")
    expect(link).to_have_attribute("data-link", "open")

    stage.wire.disconnect()
    expect(link).to_have_attribute("data-link", "lost")
    expect(page.locator(".outage")).to_contain_text("No connection to the run since")
    for event in ("retry", "query_started"):
        data = {"reason": "while nobody listened", "wait_seconds": 1.0, "failures": 1, "trigger": "5 seconds"}
        stage.send(
            Event(event, "purchases", {**data, "id": "", "run_id": "", "batch": 1, "sources": ["purchases"]})
        )
    stage.send(*traffic.batch("funnel", time.time()))
    stage.wire.mend()

    expect(link).to_have_attribute("data-link", "open")
    expect(page.locator(".outage")).to_have_count(0)
    expect(page.locator("#log")).to_contain_text("while nobody listened")
    expect(page.locator('[data-query="funnel"] td').nth(2)).to_have_text(str(traffic.batches["funnel"] - 1))


@pytest.mark.usefixtures("traffic")
def test_the_page_goes_on_with_a_run_that_starts_again(stage: Stage, opened: Callable[..., Page]) -> None:
    page = opened(lossy=True)
    expect(page.locator(".headline")).to_contain_text("All is well")

    stage.end()
    expect(page.locator("[data-link]")).not_to_have_attribute("data-link", "open")
    run = "20260301-130000-4712"
    stage.open(run)
    stage.history(Traffic(began=time.time() - 60, run=run, pipeline="ecommerce again").until(time.time() - 1))
    stage.wire.mend()

    expect(page.locator("[data-link]")).to_have_attribute("data-link", "open")
    expect(page.locator("h1")).to_contain_text("ecommerce again")
    expect(page.locator('[data-query="funnel"] td').nth(2)).to_have_text("10")


def test_hostile_text_is_shown_and_not_run(stage: Stage, opened: Callable[..., Page]) -> None:
    now = time.time()
    name = HOSTILE.replace('"', "").replace(" ", "").replace(".", "")
    traffic = Traffic(began=now - 60, queries={name: [name]}, pipeline=HOSTILE)
    stage.history(traffic.until(now - 1))
    stage.looks.columns = [("window_start", "timestamp"), (HOSTILE, "bigint"), ("kind", "string")]
    stage.looks.drawn = [[text(now - 60 * back), back, HOSTILE] for back in range(5)]
    stage.looks.values = [HOSTILE]
    letter = {"at": text(now), "query": name, "source": name, "batch": 1, "reason": HOSTILE, "place": HOSTILE}
    stage.looks.latest = [{**letter, "value": HOSTILE}]
    reasons = [{"source": name, "reason": HOSTILE, "records": 1}]
    stage.history(
        [Event("dead_letter", name, {"batch": 1, "sources": {name: 1}, "records": 1, "reasons": reasons})]
    )
    stage.history([failed_run(name, now, value=HOSTILE)])

    page = opened()

    for place in ("h1", ".headline", ".failure pre", "#queries", "#lag", ".messages", ".rows", ".letters"):
        expect(page.locator(place).first).to_contain_text("onerror=")
    assert page.locator("main img, main script, header img, header script").count() == 0
    assert "✕" in page.title()


@pytest.mark.usefixtures("traffic")
def test_a_command_is_shown_where_the_page_cannot_copy_it(stage: Stage, opened: Callable[..., Page]) -> None:
    letter = {"at": text(time.time()), "query": "funnel", "source": "clicks", "batch": 1, "value": "{"}
    place = {"place": "topic clicks, partition 1, offset 4071", "show": "clicks/1@4071"}
    stage.looks.latest = [{**letter, **place, "reason": "malformed"}]
    page = opened()
    # As over plain HTTP from another machine.
    page.evaluate("() => Object.defineProperty(navigator, 'clipboard', {value: undefined})")

    page.locator("#letters summary").click()
    page.locator("#letters").get_by_role("button", name="Copy command").click()

    expect(page.locator("#letters .sample code")).to_have_text("millstream deadletter show clicks/1@4071")
