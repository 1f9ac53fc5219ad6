"""How soon an open page is seen: the first paint, and the graph of the pipeline, each time in a new browser profile.

    python benchmarks/first_paint.py http://127.0.0.1:4040/...
    python benchmarks/first_paint.py .millstream/runs/RUN/000001.jsonl

Takes the address that a run prints, or the events of a recorded run, which it serves itself. Printed are milliseconds
since the page was asked for, the median and the most of ten openings at 1440 by 900, and the kilobytes that were
sent.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

OPENINGS = 10
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# First contentful paint is text or a picture; the paint before it is a colour.
MEASURE = """async () => {
  const paint = await new Promise(done => new PerformanceObserver(list => {
    const first = list.getEntriesByName("first-contentful-paint")[0];
    if (first) done(first.startTime);
  }).observe({type: "paint", buffered: true}));
  const sent = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
  return {paint, graph: performance.now(), sent: sent.reduce((sum, one) => sum + one.transferSize, 0)};
}"""


@contextmanager
def serve(what: str) -> Iterator[str]:
    """Give the address of the page, of a server of its own if `what` is a file."""
    if what.startswith("http"):
        yield what
        return
    command = [sys.executable, "-m", "millstream.dashboard.replay", what, "--port", "0", "--speed", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL
    ) as server:
        try:
            assert server.stdout is not None
            for line in server.stdout:
                if address := re.search(r"http://\S+", line):
                    yield address[0]
                    return
            raise SystemExit(f"{what} is not served")
        finally:
            server.kill()


def open_page(browser: Browser, address: str) -> dict[str, Any]:
    """Open the page in a new profile, and wait until the graph is drawn."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.goto(address, wait_until="commit")
    page.locator(".drawing .node").first.wait_for()
    measured: dict[str, Any] = page.evaluate(MEASURE)
    context.close()
    return measured


def main() -> None:
    """Open the page a number of times, and print what was measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("page", help="address of a page, or the file of a recorded run")
    options = parser.parse_args()
    program = os.environ.get("MILLSTREAM_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    flags = ["--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with serve(options.page) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=flags)
        measured = [open_page(browser, address) for _ in range(OPENINGS)]
        browser.close()
    for name, label in (("paint", "first contentful paint"), ("graph", "graph drawn")):
        values = [one[name] for one in measured]
        print(f"{label}: median {statistics.median(values):.0f} ms, most {max(values):.0f} ms")
    print(f"sent: {max(one['sent'] for one in measured) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
