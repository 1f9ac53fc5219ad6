"""One Chromium a file of tests, and a page that must not complain, nor ask anybody but its own server."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from page.made import Traffic
from page.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, ConsoleMessage, Page

# What a person would call at once; a loaded machine may need longer before it is a fault.
PATIENCE = 20_000
ROOT = Path(__file__).parents[2]
STATIC = ROOT / "src/millstream/dashboard/static"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium() -> str | None:
    """The browser of this machine."""
    value = os.environ.get("MILLSTREAM_CHROMIUM")
    return value or next((item for name in NAMES if (item := shutil.which(name))), None)


def absent(what: str) -> None:
    """Skip for want of something; in CI nothing may be wanting."""
    if os.environ.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for the tests of a file."""
    from playwright.sync_api import expect, sync_playwright

    program = chromium()
    if program is None:
        absent(
            "there is no Chromium here; python tools/install.py page installs one as root, or set MILLSTREAM_CHROMIUM"
        )
    # Chromium's sandbox refuses to start as root, which CI is; the page is our own.
    flags = ["--disable-gpu", "--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        here = playwright.chromium.launch(executable_path=program, args=flags, timeout=60_000)
        yield here
        here.close()


@dataclass
class Watched:
    """What a page asked for, and what it complained about."""

    address: str
    asked: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def watch(self, page: Page, *, lossy: bool = False) -> None:
        """Note what this page does. `lossy`: the connection will break, which a browser itself notes as an error."""
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("pageerror", lambda error: self.errors.append(str(error)))

        def note_message(message: ConsoleMessage) -> None:
            if message.type in ("error", "warning") and not (lossy and "net::" in message.text):
                self.errors.append(message.text)

        page.on("console", note_message)

    def check(self) -> None:
        """No error was told, and nobody asked but the page's own server."""
        assert self.errors == []
        assert [url for url in self.asked if not url.startswith((self.address, "data:"))] == []


def ten_minutes(stage: Stage) -> Traffic:
    """Ten minutes of a run that goes well, up to now."""
    now = time.time()
    here = Traffic(began=now - 600)
    stage.history(here.until(now - 0.5))
    return here


@pytest.fixture
def stage() -> Iterator[Stage]:
    """A server of the page without events."""
    here = Stage(STATIC)
    yield here
    here.close()


@pytest.fixture
def traffic(stage: Stage) -> Traffic:
    """Ten minutes of a run that goes well, up to now."""
    return ten_minutes(stage)


@pytest.fixture
def opened(browser: Browser, stage: Stage) -> Iterator[Callable[..., Page]]:
    """Opens the page; at the end it must have told no error, and asked nobody else."""
    watched = Watched(stage.address)
    contexts = []

    def open_page(
        *, width: int = 1280, height: int = 800, scheme: str = "light", lossy: bool = False
    ) -> Page:
        size = {"width": width, "height": height}
        context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce")
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        watched.watch(page, lossy=lossy)
        page.goto(stage.address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    watched.check()


@dataclass
class Shown:
    """A page over a run that goes well, and the server behind it."""

    page: Page
    stage: Stage


@pytest.fixture(scope="module")
def shared_view(browser: Browser) -> Iterator[Shown]:
    """One page for the tests of a file that change nothing in the run: to load one takes a second."""
    stage = Stage(STATIC)
    ten_minutes(stage)
    now = time.time()
    # The run stays as it is, however long the tests of the file take.
    stage.feed.clock = lambda: now
    watched = Watched(stage.address)
    context = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    watched.watch(page)
    page.goto(stage.address)
    yield Shown(page, stage)
    context.close()
    stage.close()
    watched.check()


@pytest.fixture
def page_view(shared_view: Shown) -> Shown:
    """The page, as a person finds it: the first query chosen, nothing open."""
    shared_view.page.keyboard.press("Escape")
    shared_view.page.keyboard.press("1")
    shared_view.page.evaluate("() => { document.activeElement.blur(); window.scrollTo(0, 0); }")
    return shared_view
