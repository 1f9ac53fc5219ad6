"""The schema for editors takes the test files that the loader takes, and marks what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from millstream.cli.explain.schema import command
from millstream.pipeline.load.document import parse_yaml

ROOT = Path(__file__).parents[4]
FILES = sorted([*ROOT.glob("tests/spark/cases/*.yml"), *ROOT.glob("examples/*/tests/*.yml")])
# A command keeps the names of its help option from its first call on.
_NAMES = {"help_option_names": ["-h", "--help"]}
SCHEMA = Draft202012Validator(json.loads(CliRunner().invoke(command, ["--tests"], **_NAMES).stdout))


@pytest.mark.parametrize("file", FILES, ids=lambda file: "-".join(file.parts[-3:]))
def test_it_takes_every_test_file_of_the_repository(file: Path) -> None:
    data = parse_yaml(file.name, file.read_text(encoding="utf-8")).data

    assert [error.message for error in SCHEMA.iter_errors(data)] == []


@pytest.mark.parametrize(
    "text",
    [
        "tests: {a: {stepz: []}}",
        "tests: {a: {steps: [{fed: {}}]}}",
        "tests: {a: {steps: [{expect_dropped: many}]}}",
    ],
)
def test_it_marks_what_no_test_file_can_hold(text: str) -> None:
    assert list(SCHEMA.iter_errors(yaml.safe_load(text)))
