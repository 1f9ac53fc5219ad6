"""Moments at which a proof makes a run die: armed by the environment, and by nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from millstream.connectors import failpoints
from millstream.connectors.failpoints import VARIABLE, hit_failpoint, known_failpoints
from millstream.diagnostics.failure import InvalidInput, Outage

SOURCES = Path(failpoints.__file__).parents[1]


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failpoints, "_counts", {})


def test_nothing_happens_unless_it_is_armed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)

    for point in known_failpoints():
        hit_failpoint(point)


def test_it_fails_at_the_time_that_was_asked_for_and_at_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "delta.before=raise@2,kafka.sent=raise")
    hit_failpoint("delta.before")

    with pytest.raises(Outage, match=r"delta\.before"):
        hit_failpoint("delta.before")
    with pytest.raises(Outage, match=r"kafka\.sent"):
        hit_failpoint("kafka.sent")

    hit_failpoint("delta.before")
    hit_failpoint("delta.committed")


def test_armed_again_it_fails_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "")
    for _ in range(2):
        failpoints.arm("delta.before=raise")
        with pytest.raises(Outage):
            hit_failpoint("delta.before")
        hit_failpoint("delta.before")


def test_it_kills_the_process_without_a_word() -> None:
    code = (
        "from millstream.connectors.failpoints import hit_failpoint\n"
        "hit_failpoint('batch.begun'); print('alive')"
    )

    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, VARIABLE: "batch.begun=kill"},
        capture_output=True,
        check=False,
        timeout=200,
    )

    assert (result.returncode, result.stdout) == (-signal.SIGKILL, b"")


@pytest.mark.parametrize(
    "said", ["delta.befor=kill", "delta.before=burn", "delta.before", "delta.before=kill@0"]
)
def test_what_cannot_be_armed_is_refused(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, said)

    with pytest.raises(InvalidInput, match="not POINT=ACTION@N"):
        hit_failpoint("batch.begun")


def test_every_point_is_reached_somewhere() -> None:
    code = "\n".join(path.read_text() for path in SOURCES.rglob("*.py"))

    assert [point for point in known_failpoints() if f'hit_failpoint("{point}")' not in code] == []
