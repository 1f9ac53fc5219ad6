"""Run `millstream.dashboard.replay_server` as `python -m millstream.dashboard.replay`."""

from __future__ import annotations

import sys

from millstream.dashboard.replay_server import main

if __name__ == "__main__":
    sys.exit(main())
