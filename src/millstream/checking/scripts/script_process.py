"""Set up this process as Python does for a script, and restore it afterwards."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import signal
import sys
import threading
import warnings
from concurrent.futures import thread as thread_pools
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.interception.audit_hook import TIME_LIMIT_SIGNAL
from millstream.checking.scripts.interception.monkeypatch import Patches
from millstream.checking.scripts.interception.sandbox import WaitReached

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Seconds to wait at the script's end for each of its threads.
LONGEST_JOIN = 5.0


class _KeptBytes(io.BytesIO):
    """What a script prints, which stays readable after the script closes its output."""

    def close(self) -> None:
        """Stay open."""


class Printed(io.TextIOWrapper):
    """The output of a script, with the methods of Python's own: `sys.stdout.reconfigure(encoding="utf-8")`."""

    def __init__(self) -> None:
        self._bytes = _KeptBytes()
        super().__init__(self._bytes, encoding="utf-8", errors="replace", write_through=True)

    def getvalue(self) -> str:
        """Return what was printed."""
        return self._bytes.getvalue().decode("utf-8", errors="replace")


@contextlib.contextmanager
def as_python_runs(path: Path, args: list[str]) -> Iterator[Printed]:
    """Set up the process as `python path args…` does, and restore it afterwards. Yields what the script prints."""
    before = dict(sys.modules)
    argv, search, folder, variables = sys.argv, list(sys.path), Path.cwd(), dict(os.environ)
    bytecode, root = sys.dont_write_bytecode, logging.getLogger()
    handlers, level, disabled = list(root.handlers), root.level, logging.root.manager.disable
    others, started = set(threading.enumerate()), dict[threading.Thread, bool]()
    _forget_user_modules()
    sys.argv, sys.dont_write_bytecode = [str(path), *args], True
    sys.path.insert(0, str(path.parent.resolve()))
    quiet = Printed()
    with (
        contextlib.redirect_stdout(quiet),
        contextlib.redirect_stderr(quiet),
        warnings.catch_warnings(),
        _restored_signals(),
        Patches() as patches,
    ):
        warnings.simplefilter("ignore")
        patches.wrap(threading.Thread, "start", partial(_start_as_daemon, started))
        try:
            yield quiet
        finally:
            _end_threads(others, started)
            sys.argv, sys.path[:], sys.dont_write_bytecode = argv, search, bytecode
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(variables)
            root.handlers[:], root.level, logging.root.manager.disable = handlers, level, disabled
            _forget_user_modules()
            sys.modules.update(before)


def _forget_user_modules() -> None:
    """Let the next import of each of the user's modules find the one next to the script that imports it."""
    for name, module in list(sys.modules.items()):
        place = _find_place(module)
        if name != "__main__" and place and call_sites.is_user_file(place):
            del sys.modules[name]


def _find_place(module: object) -> str:
    """Return the file of a module, or the first folder of a package without one; "" if there is none."""
    names = getattr(module, "__dict__", {})
    # The folders of a package in a package that is not loaded any more are not known.
    with contextlib.suppress(KeyError):
        return str(names.get("__file__") or next(iter(names.get("__path__") or ()), ""))
    return ""


def _start_as_daemon(
    started: dict[threading.Thread, bool], start: Callable[[threading.Thread], None], thread: threading.Thread
) -> None:
    """Start a thread that does not keep the process from ending. Notes whether its script would wait for it."""
    if thread.ident is None and (not thread.daemon or call_sites.find_user_frame() is not None):
        started[thread] = not thread.daemon
        thread.daemon = True
        thread.run = partial(_run_quietly, thread.run)  # type: ignore[method-assign]
    start(thread)


def _run_quietly(run: Callable[[], None]) -> None:
    with contextlib.suppress(WaitReached):
        run()


def _end_threads(others: set[threading.Thread], started: dict[threading.Thread, bool]) -> None:
    """Wait for the threads that a script has left, and end those that do not end by themselves.

    They start no more, so that a chain of timers ends.
    """
    start, pools = threading.Thread.start, cast("dict[threading.Thread, Any]", thread_pools._threads_queues)

    def start_another(thread: threading.Thread) -> None:
        if threading.current_thread() in others:
            start(thread)

    with Patches() as patches:
        patches.set(threading.Thread, "start", start_another)
        for thread in set(threading.enumerate()) - others:
            # An empty task ends a thread of a pool. Otherwise Python would wait for it before the process ends.
            if (tasks := pools.pop(thread, None)) is not None:
                tasks.put(None)
            if started.get(thread):
                thread.join(LONGEST_JOIN)
            if isinstance(thread, threading.Timer):
                thread.cancel()
            elif thread in started:
                _raise_in(thread)


@contextlib.contextmanager
def _restored_signals() -> Iterator[None]:
    """Restore the process's signal handlers afterwards."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    kinds = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
    before = {kind: signal.getsignal(kind) for kind in kinds}
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `WaitReached` in this thread if the block runs longer than `seconds`.

    The main thread gets a signal, which also ends its waiting for a lock, another thread or a socket.
    """
    ended = threading.Event()
    thread = threading.current_thread()
    is_main = thread is threading.main_thread()

    def watch(wait: Callable[[float], bool]) -> None:
        if wait(seconds):
            return
        if is_main:
            assert thread.ident is not None
            signal.pthread_kill(thread.ident, TIME_LIMIT_SIGNAL)
            return
        _raise_in(thread)

    before = signal.signal(TIME_LIMIT_SIGNAL, _raise_wait_reached) if is_main else None
    threading.Thread(target=watch, args=(ended.wait,), daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        if is_main:
            signal.signal(TIME_LIMIT_SIGNAL, before)


def _raise_wait_reached(*_: object) -> None:
    raise WaitReached


def _raise_in(thread: threading.Thread) -> None:
    """Raise `WaitReached` in a thread between two of its statements, if it has not ended."""
    import ctypes  # noqa: PLC0415 - needed only for a script that does not end

    if thread.is_alive():
        ident, error = ctypes.c_ulong(thread.ident or 0), ctypes.py_object(WaitReached)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, error)
