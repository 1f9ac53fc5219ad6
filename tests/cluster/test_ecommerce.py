"""The e-commerce example on a master and two workers, whose driver is killed at random moments."""

from __future__ import annotations

import os
import random
import signal
from typing import TYPE_CHECKING

import pytest

import sweep
from acceptance.oracle import differences

if TYPE_CHECKING:
    from acceptance.project import Project

SEED = int(os.environ.get("MILLSTREAM_SEED", "5"))
KILLS = sweep.size(1, 3, "MILLSTREAM_KILLS")
# Of fewer the generator makes no purchase.
ROWS = 8000
BRISK = ("--set", "defaults.trigger=1 seconds")


# test_cluster.py kills a driver in each run of the tests.
@pytest.mark.whole
@pytest.mark.timeout(600 + 180 * KILLS)
@pytest.mark.kills(KILLS)
def test_the_tables_of_the_example_equal_the_batch_answer_after_kills_and_a_graceful_stop(
    ecommerce: Project,
) -> None:
    chance = random.Random(SEED)
    for number in range(KILLS):
        ecommerce.send(ROWS, seed=number + 1, start=f"2026-01-01T{number:02d}:00:00Z")
        running = ecommerce.start("run", "--json", "--no-page", *BRISK)
        running.await_event("batch_committed")
        running.stays(chance.uniform(0, 6))
        running.kill()
    stopped = ecommerce.start("run", "--json", "--no-page", *BRISK)
    stopped.await_event("query_started")
    stopped.signal(signal.SIGTERM)

    assert stopped.ends() == 0, stopped.words()
    ecommerce.catch_up(600)

    assert differences(ecommerce.expected_tables(), ecommerce.stored_tables()) == "", f"seed {SEED}"
