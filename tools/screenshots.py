"""Pictures of the live page: the e-commerce example as it starts, at rest, under load and broken, light and dark.

    python tools/screenshots.py [--all FOLDER] [--rest 240] [--load 120] [--rate 6000] [--trigger "15 seconds"]

Writes docs/how-to/live-page/*.webp of a run like that of `millstream demo`: a broker, a database, traffic at the
example's own rate, and after a while `--rate` events a second more. In the end one record comes that Postgres cannot
hold: a text with a NUL in it. `--all` also writes each scene at 1440, 1920 and 390 pixels as PNG, of the whole page.
Takes some eight minutes. Needs Java, Kafka, Postgres, a Chromium and the tools of development.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import Producer

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from playwright.sync_api import expect, sync_playwright  # noqa: E402

from millstream.cli.init import copy_example  # noqa: E402
from millstream.cli.run.demo import EXAMPLE, TrafficProcess, _needs  # noqa: E402
from millstream.devstack import stack  # noqa: E402
from page.conftest import chromium  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

PICTURES = ROOT / "docs/how-to/live-page"
LARGEST = 100_000
# Width, height and scale; the pictures of the docs have the first.
SIZES = {"1440": (1440, 1320, 1.0), "1920": (1920, 1080, 1.0), "390": (390, 844, 2.0)}
DOCS = "1440"
# Spark's start, or the end of a query that is tried again before it gives up.
PATIENCE = 180_000


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """A run of the project, and the address of its page."""
    command = [sys.executable, "-m", "millstream", "run", "-f", str(folder), "--port", "0"]
    # Its output is no terminal: one line for each event.
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert run.stdout is not None
    with (folder / "run.log").open("w", encoding="utf-8") as log:
        address = None
        try:
            matches = (re.search(r"http://127\.0\.0\.1:\d+/", line) for line in run.stdout)
            address = next((actual[0] for actual in matches if actual), None)
            if address is None:
                raise SystemExit("the run ended before its page was there; millstream demo tells why")
            # Nobody reads on, and a full pipe would hold the run up.
            rest = threading.Thread(target=log.writelines, args=(run.stdout,))
            rest.start()
            yield address
        finally:
            run.send_signal(signal.SIGINT)
            run.wait(timeout=120)
            if address is not None:
                rest.join()


def poison(servers: str) -> None:
    """Send a purchase whose user has a name that Postgres cannot keep."""
    record = {
        "event_id": "8f14e45f-ceea-467f-a0e6-3a1b6d2c9b71",
        "user_id": "u0042\u0000",
        "product_id": "p007",
        "quantity": 1,
        "amount": 24.5,
        "event_time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
    producer = Producer({"bootstrap.servers": servers})
    producer.produce("purchases", json.dumps(record).encode(), key=b"u0042")
    producer.flush(30)


Pages = dict[tuple[str, str], "Page"]
"""The page by its width and its colours."""


def opened(browser: Browser, address: str) -> Pages:
    """The page in each size, light and dark."""
    pages: Pages = {}
    for size, (width, height, scale) in SIZES.items():
        for scheme in ("light", "dark"):
            context = browser.new_context(
                viewport={"width": width, "height": height},
                device_scale_factor=scale,
                color_scheme=scheme,
                timezone_id="UTC",
            )
            context.set_default_timeout(PATIENCE)
            pages[size, scheme] = context.new_page()
            pages[size, scheme].goto(f"{address}#funnel")
    return pages


def choose(page: Page, query: str, *, rows: bool) -> None:
    """Choose a query, and wait for its rows."""
    page.locator(f'[data-query="{query}"] .choose').click()
    page.mouse.move(0, 0)
    page.evaluate("() => { document.activeElement.blur(); window.scrollTo(0, 0); }")
    if rows:
        page.locator(".rows tbody tr").first.wait_for()
        page.locator(".messages tbody tr").first.wait_for()
        page.locator('[data-plot="states"] canvas').wait_for()


def take_screenshots(
    pages: Pages, scene: str, query: str, everything: Path | None, *, rows: bool = True
) -> None:
    """Write the pictures of a scene, with that query chosen."""
    for (size, scheme), page in pages.items():
        choose(page, query, rows=rows)
        # Two frames: the plots are drawn in the one after their figures came.
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        if everything is not None:
            page.screenshot(path=everything / f"{scene}-{size}-{scheme}.png", full_page=True)
        if size == DOCS:
            write_webp(page, PICTURES / f"{scene}-{scheme}.webp")


def write_webp(page: Page, file: Path) -> None:
    """Write what is in sight, in the best quality that is small enough for the docs."""
    session = page.context.new_cdp_session(page)
    for quality in (82, 70, 55, 40):
        told = session.send("Page.captureScreenshot", {"format": "webp", "quality": quality})
        picture = base64.b64decode(told["data"])
        if len(picture) < LARGEST:
            break
    file.write_bytes(picture)
    print(f"{file.relative_to(ROOT)}: {file.stat().st_size // 1000} kB", file=sys.stderr)


def scenes(chosen: argparse.Namespace, folder: Path, browser: Browser, held: ExitStack) -> None:
    """Run the example, and take it at rest, under load and broken."""
    copy_example(EXAMPLE, folder)
    if chosen.trigger:
        spec = folder / "pipeline.yml"
        text = spec.read_text(encoding="utf-8")
        spec.write_text(text.replace("trigger: 5 seconds", f"trigger: {chosen.trigger}"), encoding="utf-8")
    held.callback(stack.down, folder)
    endpoints = stack.up(folder, lambda _: _needs(folder), attached=True)
    usual = TrafficProcess(folder, None)
    held.callback(usual.end)
    pages = opened(browser, held.enter_context(running(folder)))
    for page in pages.values():
        expect(page.locator(".verdict .detail")).to_contain_text("first batch", timeout=PATIENCE)
    take_screenshots(pages, "starting", "funnel", chosen.all, rows=False)
    for page in pages.values():
        expect(page.locator(".headline")).to_contain_text("All is well", timeout=PATIENCE)
    time.sleep(chosen.rest)
    for page in pages.values():
        expect(page.locator(".verdict")).to_have_attribute("data-level", "ok", timeout=PATIENCE)
    take_screenshots(pages, "at-rest", "funnel", chosen.all)
    more = TrafficProcess(folder, chosen.rate)
    held.callback(more.end)
    time.sleep(chosen.load)
    take_screenshots(pages, "under-load", "funnel", chosen.all)
    more.end()
    # The run ends with the query, and a page gets no more rows then.
    for page in pages.values():
        choose(page, "purchases", rows=True)
    poison(endpoints.kafka)
    for page in pages.values():
        page.locator('[data-failure="purchases"]').wait_for()
    take_screenshots(pages, "broken", "purchases", chosen.all, rows=False)


def main() -> int:
    """Take all pictures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--all", type=Path, metavar="FOLDER", help="every size there too, as PNG")
    parser.add_argument("--rest", type=float, default=240, help="seconds before the first picture")
    parser.add_argument("--load", type=float, default=120, help="seconds before the second one")
    parser.add_argument("--rate", type=float, default=6000, help="events a second of the load")
    parser.add_argument(
        "--trigger", help="another one than the example's, where a machine is slower than that"
    )
    chosen = parser.parse_args()
    program = chromium()
    if program is None:
        print("there is no Chromium here; python tools/install.py page installs one as root", file=sys.stderr)
        return 4
    PICTURES.mkdir(parents=True, exist_ok=True)
    if chosen.all:
        chosen.all.mkdir(parents=True, exist_ok=True)
    flags = ["--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as place, ExitStack() as exit_stack:
        browser = playwright.chromium.launch(executable_path=program, args=flags)
        exit_stack.callback(browser.close)
        scenes(chosen, Path(place) / "shop", browser, exit_stack)
    return 0


if __name__ == "__main__":
    sys.exit(main())
