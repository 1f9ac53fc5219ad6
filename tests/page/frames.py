"""Ten queries with an hour behind them on a page, and what the page's main thread does to show them."""

from __future__ import annotations

import json
import statistics
import threading
import time
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

from page.made import Traffic

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Browser, Page

    from page.stage import Stage

QUERIES = 10
HOUR = 3600.0
EVERY = 1.0
# Milliseconds that a frame may last where there are sixty in a second.
FRAME = 1000 / 60

COUNT = """() => {
  window.frames_at = [];
  const count = at => { if (window.frames_at) { window.frames_at.push(at); requestAnimationFrame(count); } };
  requestAnimationFrame(count);
}"""
COUNTED = "() => { const found = window.frames_at; window.frames_at = null; return found; }"


def hour(stage: Stage, seconds: float = HOUR) -> Traffic:
    """An hour of ten queries with a batch a second each, up to now."""
    now = time.time()
    queries = {f"query_{number}": [f"topic_{number}"] for number in range(QUERIES)}
    here = Traffic(began=now - seconds, queries=queries, every=EVERY, pipeline="ten")
    stage.history(here.until(now - 0.5))
    return here


class Flow:
    """Tells the page a batch a second of each query, spread over the second, until it is closed."""

    def __init__(self, stage: Stage, traffic: Traffic) -> None:
        self._stage, self._traffic = stage, traffic
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        at = time.time()
        while True:
            for query in self._traffic.queries:
                at += EVERY / QUERIES
                if self._over.wait(max(0.0, at - time.time())):
                    return
                self._stage.send(*self._traffic.batch(query, at))


@dataclass(frozen=True)
class Seen:
    """What happened on the main thread of a page while somebody watched it."""

    frames: list[float]
    """Milliseconds from one frame to the next, by the clock."""
    tasks: list[float] = field(repr=False)
    """CPU milliseconds of each task of the main thread; one task draws a frame, or takes in a message."""
    seconds: float

    @property
    def rate(self) -> float:
        """Frames a second."""
        return len(self.frames) / self.seconds

    @property
    def share(self) -> float:
        """CPU time of the main thread, as a share of the time it had."""
        return sum(self.tasks) / 1000 / self.seconds

    @property
    def updates(self) -> list[float]:
        """CPU milliseconds of the tasks that did something worth counting, the longest first."""
        return sorted((task for task in self.tasks if task > 1.0), reverse=True)

    @property
    def frame_rate(self) -> float:
        """The share of sixty frames a second that the CPU time of the tasks leaves room for.

        A task of 40 ms takes the time of two frames more than the one that it is in.
        """
        return 1 - sum(int(task / FRAME) for task in self.tasks) / (60 * self.seconds)

    def quantile(self, share: float) -> float:
        """CPU milliseconds that this share of the updates does not exceed; 0 where there was none."""
        actual = self.updates[::-1]
        return actual[min(len(actual) - 1, int(share * len(actual)))] if actual else 0.0

    def as_json(self) -> dict[str, Any]:
        """The figures."""
        return {
            "frames_a_second": round(self.rate, 1),
            "slowest_frame_ms": round(max(self.frames), 1),
            "frames_over_two": sum(frame > 2 * FRAME for frame in self.frames),
            "update_cpu_ms": round(statistics.median(self.updates or [0.0]), 1),
            "slowest_update_cpu_ms": round(max(self.tasks), 1),
            "p95": round(self.quantile(0.95), 1),
            "updates_a_second": round(len(self.updates) / self.seconds, 1),
            "frames_kept_by_cpu": round(self.frame_rate, 3),
            "main_thread_share": round(self.share, 3),
        }


def wait_until_shown(page: Page, stage: Stage) -> None:
    """Open the page over its hour, and wait until all of it is there."""
    page.goto(stage.address)
    page.get_by_role("button", name="1 h").click()
    page.locator(".rows tbody tr").first.wait_for()
    page.locator(".messages tbody tr").first.wait_for()
    page.locator('[data-plot="states"] canvas').wait_for()
    page.keyboard.press("p")


def still(page: Page, _: int) -> None:
    """Only look."""
    page.evaluate("() => new Promise(requestAnimationFrame)")


def hover(page: Page, number: int) -> None:
    """Go along the first plot with the pointer."""
    at = page.locator('[data-plot="rates"] .plot').bounding_box()
    assert at is not None
    page.mouse.move(at["x"] + 70 + 3 * number % (at["width"] - 80), at["y"] + at["height"] / 2)


def scroll(page: Page, number: int) -> None:
    """Scroll down the page and up again."""
    page.mouse.wheel(0, 60 if number // 30 % 2 == 0 else -60)
    still(page, number)


def switch(page: Page, number: int) -> None:
    """Choose the next query some times a second, and from the last one go back."""
    if number % 20 == 0:
        page.keyboard.press("j" if number // 20 % (2 * QUERIES) < QUERIES else "k")
    still(page, number)


ACTS: dict[str, Callable[[Page, int], None]] = {
    "still": still,
    "hover": hover,
    "scroll": scroll,
    "switch": switch,
}
"""What a person does at the page, once per number."""


def measure_frames(browser: Browser, page: Page, act: Callable[[Page, int], None], frames: int) -> Seen:
    """Watch a page for so many frames while somebody acts: `act` is called with 0, 1, 2 … until they are there."""
    browser.start_tracing(page=page, categories=["toplevel", "devtools.timeline"])
    page.evaluate(COUNT)
    number = 0
    while page.evaluate("window.frames_at.length") < frames:
        act(page, number)
        number += 1
    at = page.evaluate(COUNTED)
    traced = json.loads(browser.stop_tracing())["traceEvents"]
    between = [after - before for before, after in pairwise(at)]
    return Seen(between, main_tasks(traced), sum(between) / 1000)


def main_tasks(traced: list[dict[str, Any]]) -> list[float]:
    """CPU milliseconds of each task of the main thread that drew the frames of a trace."""
    drew = [(item["pid"], item["tid"]) for item in traced if item["name"] == "FireAnimationFrame"]
    main = statistics.mode(drew)
    return [
        item["tdur"] / 1000
        for item in traced
        if item["name"] == "ThreadControllerImpl::RunTask"
        and (item["pid"], item["tid"]) == main
        and "tdur" in item
    ]
