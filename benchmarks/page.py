"""What the live page costs a run: CPU seconds of its threads beside those of the run, on the e-commerce pipeline.

    python benchmarks/page.py [--seconds 60] [--rate 2000] [--no-browser]
    python benchmarks/page.py --rounds 8 [--seconds 60] [--control]

Runs the demo's pipeline in this process with its traffic, and a client in another process that asks for what an open
page asks for: the stream of events, and every five seconds rows, messages and letters. Counted are the feed's thread,
each answer of the server, and each look at a sink or a topic, by the kernel's clock of that thread; and what it costs
Spark's listener thread to hand an event over. The run is this process, the JVM and its Python workers; servers and
traffic are not counted. `--no-browser` shows the cost of a page that nobody looks at.

With `--rounds` each round is two runs, each a process with servers and traffic of its own: one with the page and a
client, one in which no event is folded, kept or served; the other first in every second round. Printed are the CPU
seconds of each run and the ratio with / without by round: its median, least and most. `--control` sets a run without
against another one without, which shows what of that is noise.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any

from millstream.cli.init import copy_example
from millstream.cli.project import open_project
from millstream.cli.run.demo import TrafficProcess, _needs
from millstream.cli.run.run import start
from millstream.dashboard.http.data_preview import DataPreviews
from millstream.dashboard.http.event_stream import EventStream
from millstream.dashboard.live_run import LivePage, PageOptions
from millstream.devstack import stack
from millstream.engine.run import RunOptions

sys.path.insert(0, str(Path(__file__).parent))
from measure import children, cpu_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

CLIENT = """
import json, sys, threading, time, urllib.parse, urllib.request
page = sys.argv[1]
def ask():
    while True:
        for node in json.load(urllib.request.urlopen(page + "api/state"))["graph"]["nodes"]:
            if node["kind"] == "sink":
                urllib.request.urlopen(page + "api/rows?sink=" + urllib.parse.quote(node["id"])).read()
                break
        urllib.request.urlopen(page + "api/messages?source=clicks").read()
        urllib.request.urlopen(page + "api/letters").read()
        # An open page asks as often.
        time.sleep(5)
threading.Thread(target=ask, daemon=True).start()
for line in urllib.request.urlopen(page + "api/events"):
    pass
"""
CPU = "cpu seconds: "
spent: dict[str, float] = defaultdict(float)
calls: dict[str, int] = defaultdict(int)


def counted(kind: type, name: str, what: str) -> None:
    """Count the CPU seconds of a method, by the clock of the thread that runs it."""
    plain: Callable[..., Any] = getattr(kind, name)

    @functools.wraps(plain)
    def timed(*given: Any, **named: Any) -> Any:
        began = time.thread_time()
        try:
            return plain(*given, **named)
        finally:
            spent[what] += time.thread_time() - began
            calls[what] += 1

    setattr(kind, name, timed)


def looks() -> None:
    """Count what a look does in the pool's threads."""
    plain = DataPreviews._ask  # noqa: SLF001 - measured from outside

    def ask(self: DataPreviews, what: str, look: Callable[[], Any]) -> tuple[Any, str]:
        def timed() -> Any:
            began = time.thread_time()
            try:
                return look()
            finally:
                spent["looks at sinks and topics"] += time.thread_time() - began
                calls["looks at sinks and topics"] += 1

        return plain(self, what, timed)

    DataPreviews._ask = ask  # type: ignore[method-assign]  # noqa: SLF001 - as above


def browse(seen: list[subprocess.Popen[bytes]]) -> None:
    """Open a client as soon as there is a page."""
    plain = LivePage.__enter__

    def enter(self: LivePage) -> LivePage:
        page = plain(self)
        if page.address is not None:
            seen.append(
                subprocess.Popen([sys.executable, "-c", CLIENT, page.address], stderr=subprocess.DEVNULL)
            )
        return page

    LivePage.__enter__ = enter  # type: ignore[method-assign]


def silent() -> None:
    """Let the feed hear nothing, keep nothing, tell nothing."""

    def nothing(self: EventStream, event: Any) -> None: ...

    EventStream.take = nothing  # type: ignore[method-assign]
    EventStream.fold = nothing  # type: ignore[method-assign]


def run_once(how: str, chosen: argparse.Namespace) -> float:
    """The CPU seconds of one run in a process of its own."""
    more = ["--no-browser"] if chosen.no_browser else []
    result = subprocess.run(
        [
            sys.executable,
            __file__,
            "--only",
            how,
            "--seconds",
            str(chosen.seconds),
            "--rate",
            str(chosen.rate),
            *more,
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    lines = [line for line in result.stderr.splitlines() if line.startswith(CPU)]
    if not lines:
        raise SystemExit(f"the run {how} the page failed:\n{result.stderr[-2000:]}")
    return float(lines[-1].removeprefix(CPU))


def paired(chosen: argparse.Namespace) -> None:
    """Run pairs, the other first in every second round, and tell ratios."""
    first = "without" if chosen.control else "with"
    ratios, costs = [], []
    for number in range(chosen.rounds):
        if number % 2:
            base = run_once("without", chosen)
            page = run_once(first, chosen)
        else:
            page = run_once(first, chosen)
            base = run_once("without", chosen)
        ratios.append(page / base)
        costs.append((page, base))
        print(
            f"round {number + 1}: {first} {page:.1f} s, without {base:.1f} s, ratio {ratios[-1]:.4f}",
            flush=True,
        )
    page, base = (statistics.median(item) for item in zip(*costs, strict=True))
    middle = statistics.median(ratios)
    print(f"median of {chosen.rounds}: {first} {page:.1f} s, without {base:.1f} s")
    print(f"ratio {middle:.4f}, from {min(ratios):.4f} to {max(ratios):.4f}")


def main() -> None:
    """Run, and tell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rate", type=float, default=2000)
    parser.add_argument("--no-browser", action="store_true")
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--control", action="store_true")
    parser.add_argument("--only", choices=("with", "without"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.rounds:
        paired(chosen)
        return
    if chosen.only == "without":
        silent()
    counted(EventStream, "_work", "the feed: events folded and kept on disk")
    counted(EventStream, "take", "handing events over, in the threads of the run")
    counted(ThreadingMixIn, "process_request_thread", "answers of the server, the stream among them")
    looks()
    clients: list[subprocess.Popen[bytes]] = []
    if not chosen.no_browser and chosen.only != "without":
        browse(clients)
    full: list[float] = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "shop"
        copy_example("ecommerce", folder)
        stack.up(folder, lambda _: _needs(folder), attached=True)
        traffic = TrafficProcess(folder, chosen.rate)
        try:
            # Servers and traffic, which are there already; clients come later.
            other_items = children()
            before = cpu_seconds(other_items)
            # Before Spark ends: what an ended process has used is not to be had any more.
            watch = threading.Timer(
                chosen.seconds - 2,
                lambda: full.append(cpu_seconds({*other_items, *(item.pid for item in clients)}) - before),
            )
            watch.start()
            page_options = PageOptions(port=0, is_served=chosen.only != "without")
            start(
                open_project(folder),
                RunOptions(seconds=chosen.seconds),
                as_json=True,
                page_options=page_options,
            )
        finally:
            for client in clients:
                client.kill()
            traffic.end()
            stack.down(folder)
    run = full[0]
    if chosen.only:
        print(f"{CPU}{run}", file=sys.stderr)
        return
    print(f"the run: {run:.1f} CPU seconds in {chosen.seconds - 2:g} s, its start included", file=sys.stderr)
    for what, seconds in sorted(spent.items(), key=lambda item: -item[1]):
        print(
            f"  {seconds:7.3f} s  {100 * seconds / run:5.2f} %  {calls[what]:6} times  {what}",
            file=sys.stderr,
        )
    every = sum(spent.values())
    print(f"  {every:7.3f} s  {100 * every / run:5.2f} %  all of it", file=sys.stderr)


if __name__ == "__main__":
    main()
