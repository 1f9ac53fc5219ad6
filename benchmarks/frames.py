"""Whether the live page stays at 60 frames a second: ten queries with a batch a second each, an hour of history.

    python benchmarks/frames.py [--history 3600] [--frames 600]

A real Chromium without a screen and without a graphics card shows the page at 1280 by 800 pixels, its plots over the
hour, while batches come: looked at only, then with the pointer moving along a plot, scrolling, and choosing another
query three times a second. Printed are the frames a second and the slowest frame by the clock of the page, and of its
main thread the CPU milliseconds of an update (a task of more than one: script, styles, layout and painting of a
frame, or a message taken in): the median, the nineteenth of twenty, the longest; and its share of a core. Other
programs beside it lengthen frames, and much less the CPU time. Needs a Chromium and the tools of development.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
# In the place of this folder, whose page.py would stand before the folder tests/page.
sys.path[0] = str(ROOT / "tests")

from playwright.sync_api import sync_playwright  # noqa: E402

from page.conftest import chromium  # noqa: E402
from page.frames import ACTS, Flow, hour, measure_frames, wait_until_shown  # noqa: E402
from page.stage import Stage  # noqa: E402


def main() -> int:
    """Open, watch, tell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--history", type=float, default=3600, help="seconds that the run has behind it")
    parser.add_argument("--frames", type=int, default=600, help="frames that are watched of each kind")
    chosen = parser.parse_args()
    program = chromium()
    if program is None:
        print("there is no Chromium here; python tools/install.py page installs one as root", file=sys.stderr)
        return 4
    stage = Stage(ROOT / "src/millstream/dashboard/static")
    traffic = hour(stage, chosen.history)
    flags = ["--disable-gpu", "--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=flags)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        with Flow(stage, traffic):
            wait_until_shown(page, stage)
            for name, act in ACTS.items():
                print(
                    json.dumps({name: measure_frames(browser, page, act, chosen.frames).as_json()}),
                    flush=True,
                )
        browser.close()
    stage.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
