"""Confine the process of a check with the means of the kernel: no network, and no writing outside its own folders."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
_SET_FLAGS, _GET_FLAGS, _UP = 0x8914, 0x8913, 1
_NO_NEW_PRIVILEGES = 38
# The numbers of Landlock's system calls are the same on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH = 1
# Rights by Landlock's numbers: write a file, remove folders and files, make files of each kind.
_WRITE_FILE = 1 << 1
_CHANGES = _WRITE_FILE | sum(1 << bit for bit in range(4, 13))
_REFER, _TRUNCATE = 1 << 13, 1 << 14
# Abstract sockets of other processes, and signals to them.
_SCOPES = 0b11


@dataclass(frozen=True)
class Confinement:
    """What the kernel holds for this process and its children. A reason is empty for what is held."""

    network: str = ""
    """Why connections are not cut off."""
    files: str = ""
    """Why files can be written."""

    def open_doors(self) -> list[str]:
        """Return a sentence for each thing that the kernel does not hold."""
        doors = []
        if self.network:
            doors.append(
                f"the kernel does not cut off the network ({self.network}); only Python's calls are held"
            )
        if self.files:
            doors.append(f"the kernel does not protect files ({self.files}); only Python's calls are held")
        return doors


def confine_process(writable: Sequence[Path], *, files: bool = True) -> Confinement:
    """Cut this process and its later children off the network and from all files but `writable`, for good.

    Call it before the process starts a thread. Without `files`, files stay as they are.
    """
    if sys.platform != "linux":
        reason = f"there is no such means on {sys.platform}"
        return Confinement(reason, reason)
    library = ctypes.CDLL(None, use_errno=True)
    network = _leave_network(library)
    return Confinement(network, _protect_files(library, writable) if files else "files are to be changed")


def _leave_network(library: ctypes.CDLL) -> str:
    """Move this process to a separate network, which has only a loopback. Return why not, if it cannot.

    A kernel may allow the first step and refuse the next one, as Ubuntu's does with its AppArmor. The process would
    then be in a network without a loopback, and could not return. So a child process tries all steps first.
    """
    return _try_in_child(library) or _enter_network(library)


def _try_in_child(library: ctypes.CDLL) -> str:
    """Return why a child process cannot enter a separate network; "" if it can."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            # The line's end shows that the child has not died before.
            os.write(writing, f"{_enter_network(library)}\n".encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as output:
        reason = output.read()
    try:
        ending = f"status {os.waitpid(child, 0)[1]}"
    except ChildProcessError:
        # A process that inherits SIGCHLD as ignored is not told how its children end.
        ending = "an unknown status"
    return reason.removesuffix("\n") if reason else f"a process that tries it ends with {ending}"


def _enter_network(library: ctypes.CDLL) -> str:
    """Move this process to a separate network, and return what the kernel refuses."""
    user, group = os.getuid(), os.getgid()
    if library.unshare(_NEW_NETWORK) != 0:
        # Without privileges, a process may have a network of its own only together with its own users.
        if library.unshare(_NEW_USER | _NEW_NETWORK) != 0:
            return f"unshare: {os.strerror(ctypes.get_errno())}"
        try:
            _write("/proc/self/setgroups", "deny")
            _write("/proc/self/uid_map", f"{user} {user} 1")
            _write("/proc/self/gid_map", f"{group} {group} 1")
        except OSError as error:
            return f"user namespace: {error.strerror}"
    try:
        _raise_loopback()
    except OSError as error:
        return f"loopback: {error.strerror}"
    return ""


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _raise_loopback() -> None:
    """Switch on the loopback, over which Python and the JVM talk."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(control, _GET_FLAGS, request))[1]
        fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sh14x", b"lo", flags | _UP))


def _protect_files(library: ctypes.CDLL, writable: Sequence[Path]) -> str:
    """Let this process change files only below some folders. Return why not, if it cannot."""
    version = library.syscall(_CREATE_RULESET, None, 0, 1)
    if version < 1:
        code = ctypes.get_errno()
        return "Landlock is not in this kernel" if code == errno.ENOSYS else f"Landlock: {os.strerror(code)}"
    rights = _CHANGES | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    attributes = struct.pack("QQQ", rights, 0, _SCOPES if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    rules = library.syscall(_CREATE_RULESET, attributes, size, 0)
    if rules < 0:
        return f"Landlock: {os.strerror(ctypes.get_errno())}"
    try:
        for folder in writable:
            _allow(library, rules, str(folder), rights)
        _allow(library, rules, "/dev", _WRITE_FILE)
        library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        if library.syscall(_RESTRICT_SELF, rules, 0) != 0:
            return f"Landlock: {os.strerror(ctypes.get_errno())}"
    finally:
        os.close(rules)
    return ""


def _allow(library: ctypes.CDLL, rules: int, folder: str, rights: int) -> None:
    descriptor = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    try:
        # The kernel's structure is packed: eight bytes of rights, four of the descriptor.
        library.syscall(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("=Qi", rights, descriptor), 0)
    finally:
        os.close(descriptor)
