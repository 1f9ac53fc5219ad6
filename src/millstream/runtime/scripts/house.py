"""The surroundings of a script for the time of a check: nothing waits, nothing is written, nobody is called."""

from __future__ import annotations

import atexit
import builtins
import contextlib
import io
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.runtime.scripts import calls
from millstream.runtime.scripts.record import Wait

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from millstream.runtime.scripts.patches import Patches
    from millstream.runtime.scripts.record import Recording

# A script that sleeps so often waits for its queries in a loop of its own.
MOST_SLEEPS = 200

# How long a thread of the script, in seconds, may outlive its end.
LONGEST_JOIN = 5.0

_CHANGES = (
    "mkdir",
    "makedirs",
    "remove",
    "unlink",
    "rmdir",
    "removedirs",
    "rename",
    "replace",
    "truncate",
    "symlink",
)
_TREES = ("rmtree", "copy", "copy2", "copyfile", "copytree", "move")


class Waits(BaseException):
    """The script would wait for ever from here; what it did before is recorded."""


class Refused(Exception):
    """A check does not do what the script asks for."""


class House:
    """Replaces what reaches outside the process.

    `private` is the folder for what the script puts into a temporary file, `spark` that of Spark's own Python code;
    nothing else may be written.
    """

    def __init__(self, recording: Recording, private: Path, spark: Path) -> None:
        self.recording = recording
        self.private = str(private.resolve())
        self.writable = (f"{self.private}/", f"{spark.resolve()}/")
        self.sleeps = 0

    def install(self, patches: Patches) -> None:
        """Replace functions of Python's own modules."""
        patches.wrap(time, "sleep", lambda original, seconds: self._sleep(seconds, original))
        patches.set(builtins, "input", lambda *_args: "")
        patches.set(signal, "pause", lambda: self._sleep(0))
        patches.wrap(threading.Event, "wait", self._wait)
        patches.set(threading, "excepthook", lambda _args: None)
        patches.set(atexit, "register", lambda function, *_args, **_named: function)
        for owner in (builtins, io):
            patches.wrap(owner, "open", self._open)
        patches.wrap(os, "open", self._low_open)
        for name in _CHANGES:
            patches.wrap(os, name, self._unless_private)
        for name in _TREES:
            patches.wrap(shutil, name, self._unless_private)
        patches.wrap(socket.socket, "connect", self._connect)
        patches.wrap(socket.socket, "connect_ex", self._connect)
        patches.wrap(subprocess.Popen, "__init__", self._program)
        patches.wrap(os, "system", self._program)
        patches.set(tempfile, "tempdir", self.private)

    def _sleep(self, seconds: float, original: Callable[[float], None] = time.sleep) -> None:
        if calls.users_frame() is None:
            original(seconds)
            return
        self.sleeps += 1
        if self.sleeps > MOST_SLEEPS:
            self.recording.waits.append(Wait(None, len(self.recording.queries), calls.here()))
            raise Waits

    def _wait(self, original: Any, event: threading.Event, timeout: float | None = None) -> bool:
        if calls.is_users(sys._getframe(2).f_code.co_filename):
            self._sleep(0)
            return True
        return bool(original(event, timeout))

    def _open(self, original: Any, file: Any, mode: str = "r", *args: Any, **named: Any) -> Any:
        if set(mode) & set("wax+") and not self._own(file):
            return original(os.devnull, "wb" if "b" in mode else "w", *args, **_but_exclusive(named))
        return original(file, mode, *args, **named)

    def _low_open(self, original: Any, path: Any, flags: int, *args: Any, **named: Any) -> Any:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and not self._own(path) and not named.get("dir_fd"):
            return original(os.devnull, os.O_RDWR)
        return original(path, flags, *args, **named)

    def _unless_private(self, original: Any, path: Any, *args: Any, **named: Any) -> Any:
        return original(path, *args, **named) if self._own(path) or "dir_fd" in named else path

    def _own(self, path: Any) -> bool:
        """May this be written: a descriptor, the null device, a file of the private folder?"""
        if isinstance(path, int):
            return True
        text = os.fsdecode(path)
        return text == os.devnull or f"{Path(text).resolve()}/".startswith(self.writable)

    def _connect(self, original: Any, connection: socket.socket, address: Any) -> Any:
        # Spark's Python half talks to the JVM by sockets; a script does not.
        if (
            calls.through_spark()
            and isinstance(address, tuple)
            and address[0] in ("127.0.0.1", "localhost", "::1")
        ):
            return original(connection, address)
        raise ConnectionRefusedError(f"a check connects to nothing, and the script connects to {address}")

    def _program(self, original: Any, *args: Any, **named: Any) -> Any:
        if calls.users_frame() is None:
            return original(*args, **named)
        raise Refused("a check starts no other program")


def _but_exclusive(named: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in named.items() if key != "opener"}


@contextlib.contextmanager
def as_python_runs(path: Path, args: list[str]) -> Iterator[None]:
    """The process as `python path args…` would have it; all is put back in the end."""
    before = dict(sys.modules)
    argv, search, folder, variables = sys.argv, list(sys.path), Path.cwd(), dict(os.environ)
    bytecode, root = sys.dont_write_bytecode, logging.getLogger()
    handlers, level, disabled = list(root.handlers), root.level, logging.root.manager.disable
    threads = set(threading.enumerate())
    sys.argv, sys.dont_write_bytecode = [str(path), *args], True
    sys.path.insert(0, str(path.parent.resolve()))
    quiet = io.StringIO()
    with (
        contextlib.redirect_stdout(quiet),
        contextlib.redirect_stderr(quiet),
        warnings.catch_warnings(),
        _signals(),
    ):
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            for thread in set(threading.enumerate()) - threads:
                if not thread.daemon:
                    thread.join(LONGEST_JOIN)
            sys.argv, sys.path[:], sys.dont_write_bytecode = argv, search, bytecode
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(variables)
            root.handlers[:], root.level, logging.root.manager.disable = handlers, level, disabled
            for name in set(sys.modules) - set(before):
                file = getattr(sys.modules[name], "__file__", None)
                if file and calls.is_users(file):
                    del sys.modules[name]
            sys.modules["__main__"] = before["__main__"]


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """What the process does at Ctrl-C and at its end stays as it was."""
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
    """End what runs in this thread after so long, by raising `Waits` in it."""
    ended = threading.Event()
    thread = threading.get_ident()

    def watch(wait: Callable[[float], bool]) -> None:
        if not wait(seconds):
            import ctypes  # noqa: PLC0415 - needed by a script that does not end, and by no other

            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Waits))

    threading.Thread(target=watch, args=(ended.wait,), daemon=True).start()
    try:
        yield
    finally:
        ended.set()
