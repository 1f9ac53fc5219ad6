"""The page in a person's hands: keys, a phone, dark and light, a reader of screens, and before anything has come."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from page.conftest import Shown, absent
from page.made import Traffic, failed_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from page.stage import Stage

# Deque's axe-core, under MPL-2.0; used in tests only, and not part of the page.
AXE = Path(__file__).parents[2] / "page/node_modules/axe-core/axe.min.js"

# What a person can do something with, where it can be seen.
OFFERED = (
    "[...document.querySelectorAll('button, select, summary, .node')].filter(one => one.checkVisibility())"
)
# Notes where the focus is, and whether one can see that; true when it has been there before.
STEP = """() => {
  const at = document.activeElement;
  if (at === document.body) return window.met.size > 0;
  if (window.met.has(at)) return true;
  window.met.add(at);
  const own = getComputedStyle(at), box = at.querySelector(":scope > .box");
  const ring = own.outlineStyle !== "none" && parseFloat(own.outlineWidth) >= 2;
  const edge = box && parseFloat(getComputedStyle(box).strokeWidth) >= 2;
  if (!ring && !edge) window.plain.push(at.outerHTML.slice(0, 120));
  return false;
}"""


def test_keys_choose_queries_and_lead_to_every_part(page_view: Shown) -> None:
    page = page_view.page
    expect(page.locator("#plots-title")).to_have_text("funnel over time")

    page.keyboard.press("j")
    expect(page.locator("#plots-title")).to_have_text("purchases over time")
    page.keyboard.press("1")
    expect(page.locator("#plots-title")).to_have_text("funnel over time")
    for key, part in zip(
        "gqplrdef", ["graph", "queries", "plots", "lag", "results", "letters", "log", "plan"], strict=True
    ):
        page.keyboard.press(key)
        expect(page.locator(f"#{part}-title")).to_be_focused()


def test_the_state_of_a_query_is_read_when_it_is_asked_for(page_view: Shown) -> None:
    page = page_view.page
    panel = page.locator("#statestore")
    expect(panel.locator("#statestore-title")).to_contain_text("State of funnel")
    assert panel.locator("table").count() == 0

    panel.get_by_role("button", name="Show").click()

    expect(panel).to_contain_text("46 keys after batch 11, +4 in 2 batches")
    expect(panel.locator(".partitions li")).to_have_count(4)
    expect(panel.locator("tbody tr")).to_have_count(4)
    panel.get_by_role("button", name="Hide").click()
    expect(panel.locator("table")).to_have_count(0)


def test_the_keys_are_listed_under_the_question_mark(page_view: Shown) -> None:
    page = page_view.page
    expect(page.locator("#queries table")).to_be_visible()

    page.keyboard.press("?")
    expect(page.locator("dialog")).to_be_visible()
    expect(page.locator("dialog")).to_contain_text("next, previous query")
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_be_hidden()


def test_everything_is_reached_by_tab_with_a_visible_focus(page_view: Shown) -> None:
    page = page_view.page
    expect(page.locator(".rows tbody tr").first).to_be_visible()
    expected = page.evaluate(f"{OFFERED}.length")
    page.evaluate("() => { window.met = new Set(); window.plain = []; }")

    for _ in range(expected + 40):
        page.keyboard.press("Tab")
        if page.evaluate(STEP):
            break

    assert page.evaluate("() => window.plain") == []
    assert (
        page.evaluate(
            f"{OFFERED}.filter(one => !window.met.has(one)).map(one => one.outerHTML.slice(0, 120))"
        )
        == []
    )


def test_a_term_is_explained_on_focus_and_on_hover(page_view: Shown) -> None:
    page = page_view.page
    term = page.locator('[data-kpi="freshness"] .term')
    tip = page.locator('[data-kpi="freshness"] .tip')
    expect(tip).to_be_hidden()

    term.focus()
    expect(tip).to_be_visible()
    expect(tip).to_contain_text("newest event")
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    page.locator("#queries .term").first.hover()
    expect(page.locator("#queries .tip").first).to_be_visible()


def test_an_explanation_follows_its_term_when_the_page_scrolls(page_view: Shown) -> None:
    page = page_view.page
    term, tip = page.locator(".kpi .term").first, page.locator(".kpi .tip").first
    term.focus()
    expect(tip).to_be_visible()
    apart = "([a, b]) => b.getBoundingClientRect().top - a.getBoundingClientRect().top"
    before = page.evaluate(apart, [term.element_handle(), tip.element_handle()])

    page.evaluate("window.scrollBy(0, 40)")

    # A busy browser takes some frames until it tells the page that it has scrolled.
    follows = f"([a, b, before]) => window.scrollY > 0 && Math.abs(({apart})([a, b]) - before) <= 1"
    page.wait_for_function(follows, arg=[term.element_handle(), tip.element_handle(), before])
    expect(tip).to_be_visible()


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.usefixtures("traffic")
def test_no_width_scrolls_the_page_sideways(stage: Stage, opened: Callable[..., Page], width: int) -> None:
    stage.history([failed_run("purchases", time.time(), value="x" * 900)])
    page = opened(width=width, height=780)
    expect(page.locator(".rows tbody tr").first).to_be_visible()
    expect(page.locator("[data-plot] canvas")).to_have_count(4)

    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.usefixtures("traffic")
def test_colours_follow_the_system_and_the_switch_which_is_remembered(opened: Callable[..., Page]) -> None:
    page = opened(scheme="dark")
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    dark = page.evaluate(ground)

    page.emulate_media(color_scheme="light")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    assert page.evaluate(ground) != dark
    page.locator("#theme").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_a_run_that_has_only_begun_says_what_happens_next(stage: Stage, opened: Callable[..., Page]) -> None:
    stage.history(list(Traffic(began=time.time() - 2).opening())[:1])
    page = opened()

    expect(page.locator(".headline")).to_contain_text(re.compile("starting", re.IGNORECASE))
    expect(page.locator("[data-node]")).to_have_count(11)
    expect(page.locator("#plots .empty")).to_be_visible()


@pytest.mark.usefixtures("traffic")
def test_without_a_run_the_page_says_what_to_do_and_goes_on_when_there_is_one(
    opened: Callable[..., Page],
) -> None:
    page = opened(lossy=True)
    expect(page.locator(".headline")).to_contain_text("All is well")
    page.route("**/api/state", lambda route: route.abort())
    page.reload()

    expect(page.locator(".empty")).to_contain_text("millstream run")
    page.unroute("**/api/state")
    expect(page.locator(".headline")).to_contain_text("All is well")


# Counts the states that the page has received. They come after the page's own listener has got them.
COUNT_STATES = """() => {
  const listen = EventSource.prototype.addEventListener;
  EventSource.prototype.addEventListener = function (kind, ...rest) {
    listen.call(this, kind, ...rest);
    if (kind === "state") listen.call(this, kind, () => { window.states = (window.states ?? 0) + 1; });
  };
}"""


@pytest.mark.usefixtures("traffic")
def test_the_title_follows_the_run_in_a_tab_that_went_to_the_background_before_a_frame_was_drawn(
    stage: Stage, opened: Callable[..., Page]
) -> None:
    page = opened()
    page.add_init_script(f"({COUNT_STATES})()")
    page.reload()
    expect(page).to_have_title("● ecommerce: running")

    # A page in the background gets no frame.
    page.evaluate("() => { window.requestAnimationFrame = () => 0; window.states = 0; }")
    stage.send(failed_run("purchases", time.time()))
    page.wait_for_function("() => window.states > 1", polling=50)
    page.evaluate("""() => {
        Object.defineProperty(document, "hidden", {get: () => true});
        document.dispatchEvent(new Event("visibilitychange"));
    }""")

    page.wait_for_function("() => document.title === '✕ ecommerce: failed'", polling=50)


@pytest.mark.usefixtures("traffic")
def test_a_reader_of_screens_is_not_told_each_second_how_long_a_state_lasts(
    opened: Callable[..., Page],
) -> None:
    page = opened()
    expect(page.locator(".verdict .for")).to_contain_text("since")

    page.evaluate("""() => {
        [window.told, window.seconds] = [[], new Set()];
        const told = new MutationObserver(changes => window.told.push(...changes.map(one => one.target.textContent)));
        for (const region of document.querySelectorAll("header [role=status]"))
            told.observe(region, {subtree: true, childList: true, characterData: true});
        const since = document.querySelector(".verdict .for");
        new MutationObserver(() => window.seconds.add(since.textContent))
            .observe(since, {subtree: true, childList: true, characterData: true});
    }""")
    page.wait_for_function("() => window.seconds.size >= 3")

    expect(page.locator("header [role=status]").first).to_contain_text("All is well")
    assert page.evaluate("window.told") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.usefixtures("traffic")
def test_axe_finds_nothing_that_bars_anybody(stage: Stage, opened: Callable[..., Page], scheme: str) -> None:
    if not AXE.is_file():
        absent("axe-core is not here; python tools/install.py page installs it where npm is")
    stage.history([failed_run("purchases", time.time())])
    page = opened(scheme=scheme)
    expect(page.locator(".rows tbody tr").first).to_be_visible()
    page.evaluate(AXE.read_text(encoding="utf-8") + "; 0")

    messages: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")

    assert [
        (fault["id"], fault["impact"], [node["html"][:160] for node in fault["nodes"]][:4])
        for fault in messages["violations"]
    ] == []
