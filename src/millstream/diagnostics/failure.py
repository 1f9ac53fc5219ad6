"""Errors that end a command with one sentence, a cure and an exit code, never a traceback."""

from __future__ import annotations

from typing import ClassVar


class MillstreamError(Exception):
    """Something a person can act on: `what` happened (one sentence) and the `fix` (one sentence).

    `exit_code`: 1 findings, failed tests, a query that gave up; 2 wrong use or an unreadable spec;
    3 a checkpoint cannot go on; 4 the environment is not ready.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix


class WrongUse(MillstreamError):
    """The command line or the spec cannot be understood."""

    exit_code = 2


class CannotGoOn(MillstreamError):
    """A checkpoint is damaged, held by another run, or does not belong to this pipeline."""

    exit_code = 3


class Unfit(CannotGoOn):
    """A checkpoint, its sources and its sinks do not fit together any more; nobody else is at work."""


class NotReady(MillstreamError):
    """A part of the environment is missing: Java, a server, a topic, a folder that can be written."""

    exit_code = 4


class Silent(NotReady):
    """A server does not answer, or lets nobody in: nothing is known of what is behind it."""


class Outage(NotReady):
    """Something outside is away or busy for a while; the same attempt may succeed later."""
