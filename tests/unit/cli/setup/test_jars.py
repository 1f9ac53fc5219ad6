"""`millstream jars` without downloads."""

from __future__ import annotations

import json

import pytest

from millstream.cli.main import run_command


def test_the_jars_of_a_group_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["jars", "list", "spark", "s3", "--json"]) == 0

    assert {jar["group"] for jar in json.loads(capsys.readouterr().out)["jars"]} == {"spark", "s3"}


@pytest.mark.parametrize("option", ["--json", "--verify"])
def test_paths_take_no_other_option(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["jars", "paths", option]) == 2

    assert "'paths' cannot be combined with" in capsys.readouterr().err
