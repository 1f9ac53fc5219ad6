"""Handle the signals that end a command: Ctrl-C, SIGTERM, and SIGHUP, which a terminal sends when it is closed."""

from __future__ import annotations

import errno
import os
import select
import signal
import sys
import termios
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType

# The exit code that shells report for a process ended by Ctrl-C.
INTERRUPTED = 130
# The one for a process that was ended by a write to a pipe without a reader.
READER_ENDED = 128 + signal.SIGPIPE


def handle_ending(handler: Callable[[int, FrameType | None], Any]) -> Mapping[int, Any]:
    """Call `handler` for SIGINT, SIGTERM and SIGHUP, and return the previous handlers.

    SIGHUP stays ignored if the command was started that way, for example by `nohup`.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        silence_closed_terminal()
        handler(number, frame)

    return {number: signal.signal(number, handle) for number in _ending_signals()}


def exit_on_termination() -> None:
    """Run `finally` clauses when SIGTERM or SIGHUP ends this process; a second signal ends it at once."""

    def terminate(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - a signal handler's signature
        signal.signal(number, signal.SIG_DFL)
        silence_closed_terminal()
        sys.exit(128 + number)

    for number in _ending_signals():
        if number != signal.SIGINT:
            signal.signal(number, terminate)


def silence_closed_terminal() -> None:
    """Redirect standard output and standard error to /dev/null if their terminal is closed.

    Otherwise the next write raises, and interrupts a graceful end.
    """
    for descriptor in (1, 2):
        try:
            termios.tcgetattr(descriptor)
        except termios.error as error:
            if error.args[0] == errno.EIO:
                _redirect_to_null(descriptor)


def silence_closed_pipe() -> bool:
    """Redirect standard output and standard error to /dev/null if their reader, such as `head`, has ended.

    Returns whether one of them had no reader.
    """
    descriptors = [descriptor for descriptor in (1, 2) if _has_no_reader(descriptor)]
    for descriptor in descriptors:
        _redirect_to_null(descriptor)
    return bool(descriptors)


def _has_no_reader(descriptor: int) -> bool:
    poll = select.poll()
    # Errors are reported also if no other event is asked for.
    poll.register(descriptor, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def _redirect_to_null(descriptor: int) -> None:
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, descriptor)
    os.close(devnull)


class Deadline:
    """Ends this process within a fixed time after the first signal to end, whatever it is doing.

    `graceful` seconds after that signal, send a second one, which interrupts the work in progress. `final` seconds
    later, call `before_exit` in another thread and end the process without any other cleanup. Use it for a command
    whose child processes end with it, and enter it in the main thread.
    """

    def __init__(
        self, graceful: float, final: float, before_exit: Callable[[], object] = lambda: None
    ) -> None:
        self._graceful = graceful
        self._final = final
        self._before_exit = before_exit
        self._closed = threading.Event()
        self.first_signal: int | None = None
        """The first signal to end that this process received."""

    def __enter__(self) -> Deadline:
        # The interpreter writes the number of each signal to this pipe, even while the main thread waits in C code.
        self._numbers, self._wakeup = os.pipe()
        os.set_blocking(self._wakeup, False)
        signal.set_wakeup_fd(self._wakeup, warn_on_full_buffer=False)
        threading.Thread(target=self._watch, name="deadline", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(-1)
        self._closed.set()
        os.close(self._wakeup)

    def _watch(self) -> None:
        while number := os.read(self._numbers, 1):
            if number[0] not in _ENDING:
                continue
            self.first_signal = self.first_signal or number[0]
            if not self._closed.wait(self._graceful):
                os.kill(os.getpid(), signal.SIGTERM)
            if not self._closed.wait(self._final):
                self._before_exit()
                os._exit(INTERRUPTED)
        os.close(self._numbers)


_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _ending_signals() -> tuple[signal.Signals, ...]:
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return tuple(number for number in _ENDING if number != signal.SIGHUP or not ignored)
