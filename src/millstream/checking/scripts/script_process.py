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
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.checking.scripts.interception import call_sites
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
    threads = set(threading.enumerate())
    _forget_user_modules()
    sys.argv, sys.dont_write_bytecode = [str(path), *args], True
    sys.path.insert(0, str(path.parent.resolve()))
    quiet = Printed()
    with (
        contextlib.redirect_stdout(quiet),
        contextlib.redirect_stderr(quiet),
        warnings.catch_warnings(),
        _restored_signals(),
    ):
        warnings.simplefilter("ignore")
        try:
            yield quiet
        finally:
            _end_threads(threads)
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


def _end_threads(others: set[threading.Thread]) -> None:
    """Wait for the threads that a script has left. They start no more, so that a chain of timers ends."""
    start = threading.Thread.start

    def start_another(thread: threading.Thread) -> None:
        if threading.current_thread() in others:
            start(thread)

    with Patches() as patches:
        patches.set(threading.Thread, "start", start_another)
        for thread in set(threading.enumerate()) - others:
            if not thread.daemon:
                thread.join(LONGEST_JOIN)
            if isinstance(thread, threading.Timer):
                thread.cancel()


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
    """Raise `WaitReached` in this thread if the block runs longer than `seconds`."""
    ended = threading.Event()
    thread = threading.get_ident()

    def watch(wait: Callable[[float], bool]) -> None:
        if not wait(seconds):
            import ctypes  # noqa: PLC0415 - needed only for a script that does not end

            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(WaitReached))

    threading.Thread(target=watch, args=(ended.wait,), daemon=True).start()
    try:
        yield
    finally:
        ended.set()
