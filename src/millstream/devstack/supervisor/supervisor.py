"""The guardian process of one stack: it starts and stops the servers, and none of them outlives it."""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.devstack.supervisor.process import Identity
from millstream.devstack.supervisor.state import Home, ServerStatus, StackState
from millstream.process.parent_death import make_parent_death_hook

if TYPE_CHECKING:
    from types import FrameType

    from millstream.devstack.supervisor.server_spec import ServerSpec

# Seconds between checks if nothing wakes it. The end of a child, a signal and the end of the starter all do.
_IDLE = 5.0
_BUSY = 0.05


class StackSupervisor:
    """Runs the servers listed in `parts.json`, and writes their states to `state.json`."""

    def __init__(self, home: Home, *, attached: bool) -> None:
        self.home = home
        self.attached = attached
        self.leaving = False
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self.started: dict[str, ServerSpec] = {}
        self.states: dict[str, ServerStatus] = {}
        self.deadlines: dict[str, float] = {}
        self.saved_states: dict[str, ServerStatus] | None = None

    def work(self) -> None:
        """Serve until asked to stop, or until the starter has ended; then stop all servers."""
        wake_pipe, wake_signal = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_signal, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._request_stop)
        signal.signal(signal.SIGINT, self._request_stop)
        for number in (signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, _wake)
        watched = [wake_pipe, 0] if self.attached else [wake_pipe]
        while True:
            self._step()
            if self.leaving and not self.children:
                return
            ready, _, _ = select.select(watched, [], [], _BUSY if self.deadlines else _IDLE)
            if wake_pipe in ready:
                os.read(wake_pipe, 4096)
            if 0 in ready and not os.read(0, 4096):
                # The starter had the other end of this pipe open and has ended, in whatever way.
                watched.remove(0)
                self.leaving = True

    def _step(self) -> None:
        self._reap()
        # Nobody can stop servers whose folder was deleted.
        self.leaving = self.leaving or not self.home.path.exists()
        for name, part in {**self.started, **self.home.parts()}.items():
            should_run = part.run and not self.leaving
            previous = self.states.get(name)
            if name in self.children:
                if not should_run or (previous and previous.turn != part.turn):
                    self._stop(part)
            elif should_run and (previous is None or previous.turn != part.turn):
                self._start(part)
            elif previous and not part.run and previous.turn != part.turn:
                self.states[name] = ServerStatus("stopped", part.turn, code=previous.code)
        self._write_state()

    def _start(self, part: ServerSpec) -> None:
        with Path(part.log).open("ab") as log:
            child = subprocess.Popen(
                part.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.home.path,
                env={**os.environ, **part.environment},
                preexec_fn=make_parent_death_hook(signal.Signals[part.death]),
            )
        self.children[part.name], self.started[part.name] = child, part
        self.states[part.name] = ServerStatus("running", part.turn, Identity.of(child.pid))

    def _stop(self, part: ServerSpec) -> None:
        child, now = self.children[part.name], time.monotonic()
        if part.name not in self.deadlines:
            child.send_signal(signal.Signals[part.stop])
            self.deadlines[part.name] = now + part.grace
            previous = self.states[part.name]
            self.states[part.name] = ServerStatus("stopping", previous.turn, previous.process)
        elif now > self.deadlines[part.name]:
            child.kill()

    def _reap(self) -> None:
        for name, child in list(self.children.items()):
            code = child.poll()
            if code is None:
                continue
            was_stopped = self.deadlines.pop(name, None) is not None
            self.states[name] = ServerStatus(
                "stopped" if was_stopped else "failed", self.states[name].turn, code=code
            )
            del self.children[name]

    def _write_state(self) -> None:
        if self.states != self.saved_states:
            state = StackState(Identity.current(), self.attached, self.states)
            # A full disk must not end the servers; the next step tries again.
            with contextlib.suppress(OSError):
                self.home.write("state.json", state.to_json())
                self.saved_states = dict(self.states)

    def _request_stop(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - a signal handler's signature
        self.leaving = True


def _wake(number: int, frame: FrameType | None) -> None:
    """Do nothing: the arrival of the signal alone wakes the loop."""


def main() -> None:
    """Serve the stack of a project; with `--attached`, standard input is the starter's pipe."""
    parser = argparse.ArgumentParser(description="Owns the servers of one local stack.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--attached", action="store_true")
    arguments = parser.parse_args()
    if os.fork():
        os._exit(
            0
        )  # the starter waits for this process; the child is adopted by init and never becomes a zombie
    StackSupervisor(Home(arguments.folder), attached=arguments.attached).work()


if __name__ == "__main__":
    main()
