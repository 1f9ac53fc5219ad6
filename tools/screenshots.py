"""Pictures of the live page for the docs: the e-commerce run at rest, under load and broken, light and dark.

`python tools/screenshots.py` writes docs/how-to/live-page/*.webp. Needs a Chromium and the tools of development.
The events are made up, as those of the tests of the page; the server and the page are the real ones.
"""

from __future__ import annotations

import base64
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from playwright.sync_api import sync_playwright  # noqa: E402

from millstream.runtime.events import Event  # noqa: E402
from page.conftest import chromium  # noqa: E402
from page.made import Traffic, failed, text  # noqa: E402
from page.stage import Stage  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser

PICTURES = ROOT / "docs/how-to/live-page"
MINUTES = 22
LARGEST = 100_000
WIDTH, HEIGHT = 1280, 1440


def at_rest(now: float) -> Iterator[Event]:
    """All is well."""
    yield from Traffic(began=now - 60 * MINUTES).until(now - 0.4)


def under_load(now: float) -> Iterator[Event]:
    """For the last minutes eight times the traffic comes; batches are limited, and the lag grows."""
    burst = 60.0 * (MINUTES - 7)
    yield from Traffic(
        began=now - 60 * MINUTES, load=lambda second: 1 + 7 / (1 + 2.7 ** ((burst - second) / 12))
    ).until(now - 0.4)


def broken(now: float) -> Iterator[Event]:
    """One record that a query cannot read."""
    traffic = Traffic(began=now - 60 * MINUTES)
    yield from traffic.until(now - 78)
    refused = 'postgres purchases: connection to server at "localhost", port 5432 failed: Connection refused'
    yield Event("retry", "purchases", {"reason": refused, "wait_seconds": 4.0, "failures": 1}, text(now - 77))
    told = {"id": "", "run_id": "", "trigger": "5 seconds", "batch": 248, "sources": ["purchases"]}
    yield Event("query_started", "purchases", told, text(now - 72))
    for back in range(71, 40, -5):
        yield from traffic.batch("funnel", now - back)
        yield from traffic.batch("purchases", now - back + 0.3)
    yield failed("purchases", now - 37, batch=traffic.batches["purchases"], offset=13801)
    for back in range(36, 0, -5):
        yield from traffic.batch("funnel", now - back)


SCENES: dict[str, Callable[[float], Iterator[Event]]] = {
    "at-rest": at_rest,
    "under-load": under_load,
    "broken": broken,
}


def taken(browser: Browser, scene: str, scheme: str) -> bytes:
    """One picture as WebP."""
    stage = Stage(ROOT / "src/millstream/dashboard/static")
    stage.history(SCENES[scene](time.time()))
    context = browser.new_context(
        viewport={"width": WIDTH, "height": HEIGHT},
        color_scheme=scheme,
        reduced_motion="reduce",
        timezone_id="UTC",
    )
    page = context.new_page()
    page.goto(stage.address + ("#purchases" if scene == "broken" else "#funnel"))
    page.locator(".rows tbody tr").first.wait_for()
    page.locator(".messages tbody tr").first.wait_for()
    page.locator('[data-plot="states"] canvas').wait_for()
    # Two frames: the plots are drawn in the one after their figures came.
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    session = context.new_cdp_session(page)
    for quality in (82, 70, 55, 40):
        told = session.send("Page.captureScreenshot", {"format": "webp", "quality": quality})
        picture = base64.b64decode(told["data"])
        if len(picture) < LARGEST:
            break
    context.close()
    stage.close()
    return picture


def main() -> int:
    """Take all pictures."""
    program = chromium()
    if program is None:
        print("there is no Chromium here; python tools/install.py page installs one as root", file=sys.stderr)
        return 4
    PICTURES.mkdir(parents=True, exist_ok=True)
    flags = ["--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=flags)
        for scene in SCENES:
            for scheme in ("light", "dark"):
                file = PICTURES / f"{scene}-{scheme}.webp"
                file.write_bytes(taken(browser, scene, scheme))
                print(f"{file.relative_to(ROOT)}: {file.stat().st_size // 1000} kB", file=sys.stderr)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
