"""Which moments and which processes a proof chooses for its kills."""

from __future__ import annotations

from collections import Counter

import pytest

from millstream.proof.kill_plan import KilledProcess, KillTarget, choose_victims


@pytest.mark.parametrize("seed", range(20))
def test_of_six_kills_at_least_one_is_of_each_kind(seed: int) -> None:
    chosen = choose_victims(6, seed)

    assert (len(chosen), set(chosen)) == (6, set(KilledProcess))


def test_the_same_seed_kills_the_same_processes() -> None:
    assert choose_victims(60, 7) == choose_victims(60, 7)
    assert Counter(choose_victims(60, 7))[KilledProcess.BOTH] > 20


def test_python_stands_still_while_its_jvm_alone_is_killed() -> None:
    assert KillTarget("kafka.sent", 2, victim=KilledProcess.JVM).armed == "kafka.sent=stop@2"
    assert KillTarget("kafka.sent", 2, victim=KilledProcess.PYTHON).armed == "kafka.sent=kill@2"
