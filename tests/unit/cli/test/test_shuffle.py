import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from millstream.cli.test.shuffle import _following, _summary, _written_test
from millstream.cli.test.test import command
from millstream.diagnostics.failure import InvalidInput
from millstream.testing.shuffle.report import summarize_outcome, to_json_data
from millstream.testing.shuffle.shuffle import shuffle
from unit.testing.shuffle.simulated import World, batchwise, case, right


def shuffle_once(world: Any) -> dict[str, Any]:
    shuffled = shuffle(world, world.play, 5, 1)
    outcome = "passed" if shuffled.has_passed else "failed"
    data = to_json_data(shuffled, world.items, {})
    return {
        "name": "it's",
        "file": "t.yml",
        "outcome": outcome,
        "message": summarize_outcome(shuffled),
        "shuffle": data,
    }


@pytest.mark.parametrize("other", [["--update"], ["--watch"], ["--junit", "out.xml"]])
def test_shuffle_goes_with_nothing_that_plays_a_test_as_it_stands(other: list[str]) -> None:
    # A command keeps the names of its help option from its first call on.
    names = {"help_option_names": ["-h", "--help"]}

    with pytest.raises(InvalidInput, match="--shuffle"):
        CliRunner().invoke(command, ["--shuffle", "5", *other], catch_exceptions=False, **names)


def test_the_end_counts_tests_and_splits_and_tells_the_seed() -> None:
    messages = [shuffle_once(World(case(1, 2, 3), right)), shuffle_once(World(case(1, 2), batchwise))]

    text = _summary(messages, 0.0, 7)

    assert text.startswith("1 match the batch result in every split, 1 do not; 6 splits in ")
    assert text.endswith("seed 7")


def test_the_next_command_plays_the_same_splits_again() -> None:
    messages = [shuffle_once(World(case(1, 2), batchwise))]

    next_command = _following([{**messages[0], "file": "my t.yml"}], 5, 7)

    words = ["next:", "millstream", "test", "my t.yml", "-k", "it's", "--shuffle", "5", "--seed", "7"]
    assert shlex.split(next_command) == words


def test_the_test_is_found_in_its_file_with_dollars_as_they_are_meant(tmp_path: Path) -> None:
    file = tmp_path / "t.yml"
    file.write_text("tests: {windows are counted: {params: {currency: $$}, steps: []}}")

    assert _written_test(replace(case(1), file=file)) == {"params": {"currency": "$"}, "steps": []}


def test_a_test_with_a_table_lends_nothing(tmp_path: Path) -> None:
    file = tmp_path / "t.yml"
    file.write_text("tests: {windows are counted: {table: [{n: 1}], steps: []}}")

    assert _written_test(replace(case(1), file=file)) == {}
