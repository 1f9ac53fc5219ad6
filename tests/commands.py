"""Commands of millstream inside the process of a test: a new Python takes fifty times as long as most of them."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from millstream.cli.main import run_command
from millstream.spark import session
from millstream.spark.session_scope import separate_session
from millstream.testing.harness import session as test_session

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Done:
    """What became of a command. `both` is what it printed to stdout and stderr, in order."""

    returncode: int
    stdout: str
    stderr: str
    both: str


class _Tee(io.StringIO):
    """Keeps what is written, and passes it on."""

    def __init__(self, other: io.StringIO) -> None:
        super().__init__()
        self._other = other

    def write(self, text: str) -> int:
        self._other.write(text)
        return super().write(text)


@contextlib.contextmanager
def shared_spark(spark: SparkSession) -> Iterator[None]:
    """Commands get a session of their own in the Spark of the tests, and neither start one nor stop it."""

    def open_session(_: str, conf: Mapping[str, object] = session.NOTHING, log: Any = None) -> SparkSession:
        assert log is None or log.suffix == ".log"
        own = sessions.enter_context(separate_session(spark, conf))
        # Stopped, it would end the Spark of all sessions.
        patch.setattr(own, "stop", lambda: None)
        return own

    with contextlib.ExitStack() as sessions, pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "open_session", open_session)
        patch.setattr(test_session, "open_session", open_session)
        patch.setattr(session, "stop_session", lambda _: None)
        yield


def call(folder: Path, *words: str, env: Mapping[str, str]) -> Done:
    """Run `millstream …` in a folder as a new process with these variables would; see `shared_spark`."""
    both = io.StringIO()
    out, err = _Tee(both), _Tee(both)
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in os.environ:
            patch.delenv(name)
        for name, value in env.items():
            patch.setenv(name, value)
        patch.setattr(sys, "path", [str(folder), *sys.path])
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run_command([*words])
    # A module of the project, which another project may have under the same name.
    for name in set(sys.modules) - before:
        if str(folder) in str(getattr(sys.modules[name], "__file__", None)):
            del sys.modules[name]
    return Done(code, out.getvalue(), err.getvalue(), both.getvalue())
