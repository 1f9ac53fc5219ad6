"""One Chromium a file of tests, and a page that must not complain, nor ask anybody but its own server."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from page.made import Traffic
from page.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page

# What a person would call at once; a loaded machine may need longer before it is a fault.
PATIENCE = 5_000
ROOT = Path(__file__).parents[2]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium() -> str | None:
    """The browser of this machine."""
    named = os.environ.get("MILLSTREAM_CHROMIUM")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


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


@pytest.fixture
def stage() -> Iterator[Stage]:
    """A server of the page without events."""
    here = Stage(ROOT / "src/millstream/dashboard/static")
    yield here
    here.close()


@pytest.fixture
def traffic(stage: Stage) -> Traffic:
    """Ten minutes of a run that goes well, up to now."""
    now = time.time()
    here = Traffic(began=now - 600)
    stage.history(here.until(now - 0.5))
    return here


@pytest.fixture
def opened(browser: Browser, stage: Stage) -> Iterator[Callable[..., Page]]:
    """Opens the page; at the end it must have told no error, and asked nobody else."""
    asked: list[str] = []
    errors: list[str] = []
    contexts = []

    def open_page(
        *, width: int = 1280, height: int = 800, scheme: str = "light", lossy: bool = False
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
        )
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        # A browser itself notes a connection that broke; a page that is told to lose it cannot prevent that.
        page.on(
            "console",
            lambda said: (
                errors.append(said.text)
                if said.type in ("error", "warning") and not (lossy and "net::" in said.text)
                else None
            ),
        )
        page.goto(stage.address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert errors == []
    assert [url for url in asked if not url.startswith((stage.address, "data:"))] == []
