"""Options of `millstream test` that have no effect together are refused."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from millstream.cli.test.test import command
from millstream.diagnostics.failure import InvalidInput


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--update --json", "--update cannot be combined with --json"),
        ("--update --junit out.xml -x", "--update cannot be combined with -x or --junit"),
        ("--record clicks --update -k late", "--record cannot be combined with --update or -k"),
        ("--watch --seed 1 --json", "--watch cannot be combined with --json or --seed"),
        ("--shuffle 5 --junit out.xml", "--shuffle cannot be combined with --junit"),
        ("--seed 1", "--seed has no effect without --shuffle"),
        ("--rows 20 --update", "--update cannot be combined with --rows"),
        ("--query funnel", "--query has no effect without --record"),
    ],
)
def test_an_option_without_effect_is_refused(options: str, message: str) -> None:
    # A command keeps the names of its help option from its first call on.
    names = {"help_option_names": ["-h", "--help"]}

    with pytest.raises(InvalidInput) as refused:
        CliRunner().invoke(command, options.split(), catch_exceptions=False, **names)

    assert str(refused.value) == message
