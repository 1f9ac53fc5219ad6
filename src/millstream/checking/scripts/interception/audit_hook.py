"""Refuse side effects of a checked script that bypass the replaced functions, with a Python audit hook."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import sysconfig
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.checking.scripts.interception import call_sites

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from millstream.checking.scripts.interception.recording import Recording

_PROGRAMS = frozenset(
    {
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.spawn",
        "os.system",
        "pty.spawn",
        "subprocess.Popen",
    }
)
_SIGNALS = frozenset({"os.kill", "os.killpg", "signal.pthread_kill"})
# By this one the check ends a script that waits for too long. No program uses it, and all ignore it by default.
TIME_LIMIT_SIGNAL = signal.SIGURG
# Events that change files, with the argument positions of each path and of the descriptor of its folder.
_CHANGES: dict[str, tuple[tuple[int, int | None], ...]] = {
    "os.chflags": ((0, None),),
    "os.chmod": ((0, 2),),
    "os.chown": ((0, 3),),
    "os.link": ((0, 2), (1, 3)),
    "os.mkdir": ((0, 2),),
    "os.remove": ((0, 1),),
    "os.removexattr": ((0, None),),
    "os.rename": ((0, 2), (1, 3)),
    "os.rmdir": ((0, 1),),
    "os.setxattr": ((0, None),),
    "os.symlink": ((1, 2),),
    "os.truncate": ((0, None),),
    "os.utime": ((0, 3),),
}
_CONNECTIONS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_LOOKUPS = frozenset({"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"})
_LIBRARIES = frozenset({"ctypes.dlopen", "ctypes.dlsym", "ctypes.dlsym/handle"})
_EVENTS = (
    _PROGRAMS
    | _SIGNALS
    | _CONNECTIONS
    | _LOOKUPS
    | _LIBRARIES
    | frozenset(_CHANGES)
    | {"open", "sqlite3.connect"}
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_LOOPBACK = ("127.0.0.1", "localhost", "::1", "0.0.0.0")  # noqa: S104 - compared only
_STANDARD_LIBRARY = str(Path(str(sysconfig.get_path("stdlib"))).resolve()) + "/"
# Importing ctypes opens Python's own library. It is opened here, before the hook watches a script.
_PYTHON = ctypes.pythonapi


class RefusedCall(PermissionError):
    """Raised for an operation of the script that a check does not allow."""


class Audit:
    """Refuses side effects of a script between `start` and `stop`.

    `writable` are the prefixes of the paths that it may write. Spark's own Python code is allowed, and so are the
    threads of the check that ran before.
    """

    def __init__(self, writable: tuple[str, ...], recording: Recording) -> None:
        self._writable = writable
        self._recording = recording
        self._own_threads: frozenset[int | None] = frozenset()

    def start(self) -> None:
        """Start watching."""
        self._own_threads = frozenset(thread.ident for thread in threading.enumerate())
        _install()
        _active.append(self)

    def stop(self) -> None:
        """Stop watching."""
        _active.remove(self)

    def is_writable(self, path: Any, folder: int | None = None) -> bool:
        """Return whether a file may be changed, because it is inside the check's own folders.

        `path` is a path or a descriptor, `folder` the descriptor of the folder that it is relative to.
        """
        if isinstance(path, int):
            return f"{_path_of(path)}/".startswith(self._writable)
        # The operation changes the link and not its target, but follows links among the parent folders.
        full_path = Path(_path_of(folder) if folder is not None and folder >= 0 else "", os.fsdecode(path))
        return f"{full_path.parent.resolve() / full_path.name}/".startswith(self._writable) and (
            f"{full_path.resolve()}/".startswith(self._writable)
        )

    def judge(self, event: str, args: tuple[Any, ...]) -> None:
        """Raise `RefusedCall` or `ConnectionRefusedError` for an operation that a script must not do."""
        if not self._is_script_code():
            return
        if event in _PROGRAMS:
            raise RefusedCall("a check does not start other programs")
        if event in _SIGNALS and args[1] != TIME_LIMIT_SIGNAL:
            raise RefusedCall("a check does not send signals to processes")
        if event in _CHANGES:
            for path, folder in _CHANGES[event]:
                if not self.is_writable(args[path], args[folder] if folder is not None else None):
                    raise RefusedCall(
                        f"a check does not change files, and the script changes {_display_name(args[path])}"
                    )
        elif event in _CONNECTIONS:
            self.connect(args[1])
        elif event in _LOOKUPS:
            self._refuse_lookup(args[0])
        elif event in _LIBRARIES:
            _refuse_library(event, args)
        elif event == "sqlite3.connect":
            self._refuse_database(args[0])
        elif not isinstance(args[0], int) and (args[2] or 0) & _WRITING:
            self._refuse_file(args[0])

    def connect(self, address: Any) -> None:
        """Raise `ConnectionRefusedError`, except for Spark's own Python code, which connects to the JVM."""
        if call_sites.is_spark_call() and isinstance(address, tuple) and address[0] in _LOOPBACK:
            return
        self._recording.has_refused_connection = True
        raise ConnectionRefusedError(
            f"a check does not open connections, and the script connects to {address}"
        )

    def _refuse_lookup(self, host: Any) -> None:
        if host in (None, "", *_LOOPBACK, socket.gethostname()) or call_sites.is_spark_call():
            return
        self._recording.has_refused_connection = True
        raise ConnectionRefusedError(f"a check does not open connections, and the script looks up {host}")

    def _is_script_code(self) -> bool:
        """Return whether the running code is the script's, or that of a thread that the script started."""
        if call_sites.find_user_frame() is not None:
            return True
        return threading.get_ident() not in self._own_threads and not call_sites.is_spark_call()

    def _refuse_file(self, path: Any) -> None:
        if os.fsdecode(path) != os.devnull and not self.is_writable(path):
            raise RefusedCall(f"a check does not write files, and the script writes {_display_name(path)}")

    def _refuse_database(self, database: Any) -> None:
        name = os.fsdecode(database)
        if name in ("", ":memory:") or name.startswith("file::memory:") or "mode=memory" in name:
            return
        if name.startswith("file:") or not self.is_writable(name):
            raise RefusedCall(
                f"a check does not open database files, and the script opens {_display_name(database)}"
            )


# The active audits. An audit hook cannot be removed once it is installed.
_active: list[Audit] = []
_installed: list[Callable[[str, tuple[Any, ...]], None]] = []


def _install() -> None:
    """Install the hook, once per process."""
    if not _installed:
        _installed.append(_hook)
        sys.addaudithook(_hook)


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if _active and event in _EVENTS:
        _active[-1].judge(event, args)


def _refuse_library(event: str, args: tuple[Any, ...]) -> None:
    """Refuse the script's own calls of C libraries. A package may load its library."""
    frame: FrameType | None = sys._getframe(3)
    while frame is not None and _is_standard_library(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None or not call_sites.is_user_file(frame.f_code.co_filename):
        return
    if event == "ctypes.dlsym" and str(args[1]).startswith("Py"):
        return
    raise RefusedCall("a check does not call C libraries for a script")


def _is_standard_library(file: str) -> bool:
    """Return whether a file belongs to Python's standard library."""
    return file.startswith("<") or (file.startswith(_STANDARD_LIBRARY) and "/site-packages/" not in file)


def _path_of(descriptor: int) -> str:
    """Return the path of an open descriptor, or "?" if it is not known."""
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            return str(Path(folder, str(descriptor)).readlink())
        except OSError:
            continue
    return "?"


def _display_name(path: Any) -> str:
    return f"'{os.fsdecode(path)}'" if isinstance(path, str | bytes | os.PathLike) else "an open file"
