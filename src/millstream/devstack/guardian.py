"""The process that owns the servers of one stack: it starts and stops them, and none of them outlives it."""

from __future__ import annotations

import argparse
import os
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.devstack.process import Identity, dies_with_parent
from millstream.devstack.state import Home, Seen, State

if TYPE_CHECKING:
    from types import FrameType

    from millstream.devstack.part import Part

# How often it looks when nothing wakes it; a child's end, a signal and the starter's end all do.
_IDLE = 5.0
_BUSY = 0.05


class Guardian:
    """Runs what `parts.json` asks for, and writes what it sees to `state.json`."""

    def __init__(self, home: Home, *, attached: bool) -> None:
        self.home = home
        self.attached = attached
        self.leaving = False
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self.seen: dict[str, Seen] = {}
        self.deadlines: dict[str, float] = {}
        self.written: dict[str, Seen] | None = None

    def work(self) -> None:
        """Serve until it is told to leave or its starter has ended, and all servers are down."""
        bell, ring = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._leave)
        signal.signal(signal.SIGINT, self._leave)
        for number in (signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, _wake)
        watched = [bell, 0] if self.attached else [bell]
        while True:
            self._step()
            if self.leaving and not self.children:
                return
            ready, _, _ = select.select(watched, [], [], _BUSY if self.deadlines else _IDLE)
            if bell in ready:
                os.read(bell, 4096)
            if 0 in ready and not os.read(0, 4096):
                # The starter held the other end of this pipe, and has ended, however it ended.
                watched.remove(0)
                self.leaving = True

    def _step(self) -> None:
        self._reap()
        for name, part in self.home.parts().items():
            wanted = part.run and not self.leaving
            before = self.seen.get(name)
            if name in self.children:
                if not wanted or (before and before.turn != part.turn):
                    self._stop(part)
            elif wanted and (before is None or before.turn != part.turn):
                self._start(part)
            elif before and not part.run and before.turn != part.turn:
                self.seen[name] = Seen("stopped", part.turn, code=before.code)
        self._tell()

    def _start(self, part: Part) -> None:
        with Path(part.log).open("ab") as log:
            child = subprocess.Popen(
                part.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.home.path,
                preexec_fn=dies_with_parent(signal.Signals[part.death]),
            )
        self.children[part.name] = child
        self.seen[part.name] = Seen("running", part.turn, Identity.of(child.pid))

    def _stop(self, part: Part) -> None:
        child, now = self.children[part.name], time.monotonic()
        if part.name not in self.deadlines:
            child.send_signal(signal.Signals[part.stop])
            self.deadlines[part.name] = now + part.grace
            before = self.seen[part.name]
            self.seen[part.name] = Seen("stopping", before.turn, before.process)
        elif now > self.deadlines[part.name]:
            child.kill()

    def _reap(self) -> None:
        for name, child in list(self.children.items()):
            code = child.poll()
            if code is None:
                continue
            asked = self.deadlines.pop(name, None) is not None
            self.seen[name] = Seen("stopped" if asked else "failed", self.seen[name].turn, code=code)
            del self.children[name]

    def _tell(self) -> None:
        if self.seen != self.written:
            self.home.write("state.json", State(Identity.own(), self.attached, self.seen).to_json())
            self.written = dict(self.seen)

    def _leave(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - a signal handler's signature
        self.leaving = True


def _wake(number: int, frame: FrameType | None) -> None:
    """Nothing: that the signal came wakes the loop."""


def main() -> None:
    """Serve the stack of a project; standard input is the starter's pipe when `--attached`."""
    parser = argparse.ArgumentParser(description="Owns the servers of one local stack.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--attached", action="store_true")
    given = parser.parse_args()
    if os.fork():
        os._exit(0)  # the starter waits for this one; the child belongs to nobody and is nobody's zombie
    Guardian(Home(given.folder), attached=given.attached).work()


if __name__ == "__main__":
    main()
