"""Run a script in a sandbox: it does not sleep, write files, start programs or open connections."""

from __future__ import annotations

import _posixsubprocess
import atexit
import builtins
import functools
import io
import os
import shutil
import signal
import socket
import sys
import tarfile
import tempfile
import threading
import time
import uuid
from collections import Counter
from pathlib import Path
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from confluent_kafka import cimpl

from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.interception.absent import Absent
from millstream.checking.scripts.interception.audit_hook import Audit, RefusedCall
from millstream.checking.scripts.interception.recording import Doubt, WaitCall
from millstream.checking.scripts.local_files import find_copied_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.checking.scripts.interception.monkeypatch import Patches
    from millstream.checking.scripts.interception.recording import Recording

# A script that sleeps more often than this waits for its queries in a loop.
MOST_SLEEPS = 200
# A larger file is not copied for a script that writes and reads it: temporary folders are often small.
MOST_BYTES_COPIED = 100_000_000

# Functions that change files, with their first parameters. None stands for a parameter that is not changed.
_CHANGES: dict[str, tuple[str | None, ...]] = {
    "chmod": ("path",),
    "chown": ("path",),
    "fchmod": ("fd",),
    "fchown": ("fd",),
    "lchown": ("path",),
    "link": ("src", "dst"),
    "makedirs": ("name",),
    "mkdir": ("path",),
    "mkfifo": ("path",),
    "mknod": ("path",),
    "remove": ("path",),
    "removedirs": ("name",),
    "removexattr": ("path",),
    "rename": ("src", "dst"),
    "renames": ("old", "new"),
    "replace": ("src", "dst"),
    "rmdir": ("path",),
    "setxattr": ("path",),
    "symlink": (None, "dst"),
    "truncate": ("path",),
    "unlink": ("path",),
    "utime": ("path",),
}
_TREE_CHANGES: dict[str, tuple[str | None, ...]] = {
    "copy": (None, "dst"),
    "copy2": (None, "dst"),
    "copyfile": (None, "dst"),
    "copytree": (None, "dst"),
    "move": ("src", "dst"),
    "rmtree": ("path",),
}


# The classes of all clients of confluent_kafka derive from these. Not every version has all of them.
_KAFKA_CLIENTS = tuple(
    vars(cimpl)[name]
    for name in ("Producer", "Consumer", "ShareConsumer", "_AdminClientImpl")
    if hasattr(cimpl, name)
)


class WaitReached(BaseException):
    """Raised when the script would wait forever. Its earlier calls are recorded."""


class ScriptSandbox:
    """Replaces functions with effects outside of the process.

    `private` is the folder for the script's temporary files, `spark` that of Spark's own Python code. No other
    folder may be written.
    """

    def __init__(self, recording: Recording, private: Path, spark: Path) -> None:
        self.recording = recording
        self.private = recording.temporary_folder = str(private.resolve())
        self.audit = Audit((f"{self.private}/", f"{spark.resolve()}/"), recording)
        self.thread = threading.get_ident()
        self.sleeps: Counter[int] = Counter()

    def install(self, patches: Patches) -> None:
        """Replace functions of Python's own modules."""
        patches.wrap(time, "sleep", lambda original, seconds: self._sleep(seconds, original))
        patches.set(builtins, "input", lambda *_args: self._idle())
        patches.set(signal, "pause", self._idle)
        patches.wrap(threading.Event, "wait", self._wait)
        patches.set(threading, "excepthook", lambda _args: None)
        patches.wrap(atexit, "register", self._register_exit)
        for owner, name in ((builtins, "open"), (io, "open"), (tarfile, "bltn_open")):
            patches.wrap(owner, name, self._open)
        patches.wrap(os, "open", self._os_open)
        patches.wrap(os, "getenv", self._note_variable)
        patches.wrap(
            type(os.environ),
            "get",
            lambda original, _names, *args: self._note_variable(functools.partial(original, _names), *args),
        )
        for owner, changes in ((os, _CHANGES), (shutil, _TREE_CHANGES)):
            for name, changed in changes.items():
                # Not every operating system has all of these functions.
                if hasattr(owner, name):
                    patches.wrap(owner, name, functools.partial(self._change, changed))
        # Python raises no audit event for these two functions.
        patches.wrap(_posixsubprocess, "fork_exec", self._start_program)
        patches.set(os, "_exit", sys.exit)
        patches.set(tempfile, "tempdir", self.private)
        # It returns the number of an error, and raises none.
        patches.wrap(socket.socket, "connect_ex", functools.partial(self._connect, 0))
        if self.recording.has_servers:
            patches.wrap(socket.socket, "connect", functools.partial(self._connect, None))
            unconnected = socket.socket()
            patches.after(unconnected.close)
            patches.wrap(socket, "create_connection", functools.partial(self._connect, unconnected))
        self._replace_kafka_clients(patches)
        for name in ("uuid1", "uuid4"):
            patches.wrap(uuid, name, self._note_uuid)
        self.audit.start()
        patches.after(self.audit.stop)

    # Bound here, before a script's `time.sleep` is replaced by this.
    def _sleep(self, seconds: float, original: Callable[[float], None] = time.sleep) -> None:
        if call_sites.find_user_frame() is None:
            original(seconds)
            return
        thread = threading.get_ident()
        self.sleeps[thread] += 1
        if self.sleeps[thread] > MOST_SLEEPS:
            # The script goes on while another thread of it waits.
            is_bounded = thread != self.thread
            self.recording.waits.append(
                WaitCall(None, len(self.recording.queries), call_sites.current_span(), is_bounded=is_bounded)
            )
            raise WaitReached

    def _wait(self, original: Any, event: threading.Event, timeout: float | None = None) -> bool:
        if call_sites.is_user_file(sys._getframe(2).f_code.co_filename):
            self._idle()
            return True
        return bool(original(event, timeout))

    def _register_exit(self, original: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Leave out what would run after the check, but the compiled functions by which libraries end their own C.

        Without Arrow's `ensure_s3_finalized` a process that has used its S3 dies by a signal when it ends.
        """
        is_of_library = not call_sites.is_user_file(sys._getframe(2).f_code.co_filename)
        if is_of_library and not isinstance(function, FunctionType | MethodType | functools.partial | type):
            return original(function, *args, **kwargs)
        return function

    def _note_variable(self, original: Any, key: str, default: Any = None) -> Any:
        """Return an environment variable, and note one that is not set."""
        value = original(key, default)
        # Between them and the script's own code are only the functions that replace Python's.
        callers = [sys._getframe(depth).f_code.co_filename for depth in (1, 2, 3, 4)]
        is_asked_by_user = any(map(call_sites.is_user_file, callers))
        if value is None and is_asked_by_user and key not in self.recording.unset_variables:
            self.recording.unset_variables.append(key)
        if value == "" and is_asked_by_user and key not in os.environ:
            self.recording.empty_variables.append(key)
        return value

    def _note_uuid(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        """Return a UUID, and note it, because a path with it is another one at each start."""
        value = original(*args, **kwargs)
        self.recording.random_texts |= {str(value), value.hex, str(value).upper()}
        return value

    def _idle(self) -> str:
        """Return at once, and without input, from a call that waits for something else than a query."""
        queries = len(self.recording.queries)
        if queries:
            self.recording.waits.append(WaitCall(None, queries, call_sites.current_span(), is_bounded=True))
        self._sleep(0)
        return ""

    def _open(self, original: Any, file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if set(mode) & set("wax+") and not self._may_write(file):
            if "+" in mode and _can_be_copied(file):
                return self._open_copy(original, file, mode, *args, **_without_opener(kwargs))
            null_mode = "w" + "".join(letter for letter in "b+" if letter in mode)
            return original(os.devnull, null_mode, *args, **_without_opener(kwargs))
        try:
            return original(file, mode, *args, **kwargs)
        except FileNotFoundError:
            copy = find_copied_file(Path(os.fsdecode(file)), self.recording.project)
            if copy is None or call_sites.find_user_frame() is None:
                raise
            return original(copy, mode, *args, **kwargs)

    def _open_copy(self, original: Any, file: Any, mode: str, *args: Any, **kwargs: Any) -> Any:
        """Open a copy of a file that is written and read, or an empty one if the file has no contents yet."""
        descriptor, copy = tempfile.mkstemp(dir=self.private)
        with open(descriptor, "wb") as target:  # noqa: PTH123 - an open descriptor
            is_read = "r" in mode or ("a" in mode and Path(os.fsdecode(file)).is_file())
            if is_read:
                with self._open(original, file, "rb") as source:
                    shutil.copyfileobj(source, target)
        return original(copy, mode.replace("x", "w"), *args, **kwargs)

    def _os_open(self, original: Any, path: Any, flags: int, *args: Any, **kwargs: Any) -> Any:
        if (
            flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            and not self._may_write(path)
            and not kwargs.get("dir_fd")
        ):
            return original(os.devnull, os.O_RDWR)
        return original(path, flags, *args, **kwargs)

    def _change(self, parameters: tuple[str | None, ...], original: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a function that changes files only if all changed files are the check's own."""
        paths = {name: value for name, value in zip(parameters, args, strict=False) if name}
        paths |= {name: kwargs[name] for name in parameters if name in kwargs}
        if all(
            self.audit.is_writable(path, _folder_descriptor(name, kwargs)) for name, path in paths.items()
        ):
            return original(*args, **kwargs)
        return paths.get("dst")

    def _may_write(self, path: Any) -> bool:
        """Return whether this may be written: a descriptor, the null device or a file of the private folder."""
        return isinstance(path, int) or os.fsdecode(path) == os.devnull or self.audit.is_writable(path)

    def _connect(self, result: Any, original: Any, *args: Any, **kwargs: Any) -> Any:
        """Return what a connection returns if the script itself asks whether a server is there."""
        # Between them is the function that replaces Python's.
        if call_sites.is_user_file(sys._getframe(2).f_code.co_filename):
            return result
        return original(*args, **kwargs)

    def _replace_kafka_clients(self, patches: Patches) -> None:
        """Replace the clients of confluent_kafka, whose library in C connects without an event of Python."""
        package = cimpl.__name__.partition(".")[0]
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] == package:
                for attribute, kind in list(vars(module).items()):
                    if isinstance(kind, type) and issubclass(kind, _KAFKA_CLIENTS):
                        patches.set(module, attribute, self._stand_in_for(kind))
        loaded = set(sys.modules)

        def forget() -> None:
            # Modules that the script was the first to import derive their clients from the stand-ins.
            for name in [name for name in set(sys.modules) - loaded if name.startswith(f"{package}.")]:
                del sys.modules[name]

        patches.after(forget)

    def _stand_in_for(self, client: type) -> type:
        """Return a class whose instances are not known, unless Millstream itself opens the client."""

        def connect(_kind: type, *args: Any, **named: Any) -> Any:
            if call_sites.find_user_frame() is None:
                return client(*args, **named)
            why = "a check does not connect to the servers of Kafka"
            doubt = Doubt(f"what {client.__name__} of confluent_kafka does", why, call_sites.current_span())
            return Absent(self.recording.doubt(doubt))

        body = {
            "__new__": connect,
            "__module__": client.__module__,
            "__class_getitem__": classmethod(lambda kind, _types: kind),
        }
        return type(client.__name__, (), body)

    def _start_program(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        if call_sites.find_user_frame() is None:
            return original(*args, **kwargs)
        raise RefusedCall("a check does not start other programs")


def _can_be_copied(file: Any) -> bool:
    """Return whether a file is missing or a small one: not a device, and not a pipe, which may have no end."""
    path = Path(os.fsdecode(file))
    return not path.exists() or (path.is_file() and path.stat().st_size <= MOST_BYTES_COPIED)


def _folder_descriptor(parameter: str, kwargs: dict[str, Any]) -> int | None:
    """Return the descriptor of the folder that a path is relative to, if the call passes one."""
    folder: int | None = kwargs.get(f"{parameter}_dir_fd", kwargs.get("dir_fd"))
    return folder


def _without_opener(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in kwargs.items() if key != "opener"}
