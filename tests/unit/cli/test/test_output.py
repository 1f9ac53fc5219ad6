"""The summary of `millstream test`."""

from __future__ import annotations

import shlex

from millstream.cli.test.output import next_command
from millstream.testing.runner.results import CaseOutcome, Result


def test_the_next_command_can_be_pasted_into_a_shell() -> None:
    failed = Result("it's late", "tests/my shop.yml", 3, CaseOutcome.FAILED, 0.1)

    command = next_command([], [failed]).partition(", ")[0]

    assert shlex.split(command) == ["next:", "millstream", "test", "tests/my shop.yml", "-k", "it's late"]
