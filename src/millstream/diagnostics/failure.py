"""Errors that end a command with one sentence, a fix and an exit code, without a traceback."""

from __future__ import annotations

from typing import ClassVar

RESTART = 75
"""The exit code of a run that must start again before its open files run out: EX_TEMPFAIL of sysexits.h."""


class MillstreamError(Exception):
    """An error that the user can act on: `what` happened (one sentence) and the `fix` (one sentence).

    `exit_code`: 1 findings, failed tests, a query that gave up; 2 wrong use or an unreadable spec;
    3 a checkpoint cannot be continued; 4 the environment is not ready.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix
        self.path: tuple[str | int, ...] = ()
        """The part of the spec that the error is about; empty if it is about none."""


class InvalidInput(MillstreamError):
    """The command line or the spec cannot be understood."""

    exit_code = 2


class CheckpointError(MillstreamError):
    """A checkpoint is damaged, locked by another run, or does not belong to this pipeline."""

    exit_code = 3


class CheckpointMismatch(CheckpointError):
    """A checkpoint does not match its sources or its sinks, and no other run is using it."""


class NotReady(MillstreamError):
    """A part of the environment is missing: Java, a server, a topic, a writable folder."""

    exit_code = 4


class Unreachable(NotReady):
    """A server does not answer or refuses the login, so the state of its data is unknown."""


class Outage(NotReady):
    """An external system is temporarily unavailable or busy; the same attempt may succeed later."""
