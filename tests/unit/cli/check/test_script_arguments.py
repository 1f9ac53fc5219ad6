"""Words after a script's name are the script's, whatever they look like."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from millstream.cli.check.check import command


def parsed(*words: str) -> tuple[list[str], dict[str, Any]]:
    """The words for the script, and the parameters of the command."""
    context = click.Context(command, info_name="check")
    command.parse_args(context, list(words))
    return context.obj, context.params


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.py").write_text("")
    (tmp_path / "more.py").write_text("")
    (tmp_path / "data").mkdir()
    return "job.py"


@pytest.mark.parametrize(
    "words",
    [
        ("-night", "2024"),
        ("--json",),
        ("-h",),
        ("--topic", "a", "--", "b"),
        ("--format", "delta"),
        ("data", "out"),
    ],
)
def test_what_follows_a_script_is_the_scripts(job: str, words: tuple[str, ...]) -> None:
    arguments, parameters = parsed(job, *words)

    assert arguments == list(words)
    assert (parameters["form"], parameters["as_json"]) == ("text", False)


def test_options_before_the_script_are_of_the_command(job: str) -> None:
    arguments, parameters = parsed("--format", "json", "--table", "a=id INT", job, "--topic", "x")

    assert arguments == ["--topic", "x"]
    assert (parameters["form"], parameters["tables"]) == ("json", ("a=id INT",))


def test_a_spec_in_python_takes_options_after_its_name(job: str) -> None:
    Path(job).write_text("import millstream as ms\n")

    arguments, parameters = parsed(job, "--json")

    assert (arguments, parameters["as_json"]) == ([], True)


def test_two_dashes_end_the_options_of_the_command(job: str) -> None:
    assert parsed(job, "--", "--json")[0] == ["--json"]


def test_several_scripts_take_no_arguments_of_the_command_line(job: str) -> None:
    arguments, parameters = parsed(job, "more.py", "--json")

    assert (arguments, parameters["as_json"]) == ([], True)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("host: db\nport: 1\n", ["settings.yml", "x"]),
        ("name: shop\nsources: {}\n", []),
        ("libraries:\n- glob: {include: flows.sql}\n", []),
    ],
)
def test_a_file_of_yaml_after_a_script_is_its_argument_unless_it_is_a_spec(
    job: str, text: str, arguments: list[str]
) -> None:
    Path("settings.yml").write_text(text)

    assert parsed(job, "settings.yml", "x")[0] == arguments
