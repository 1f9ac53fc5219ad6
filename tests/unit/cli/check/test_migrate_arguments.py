"""Arguments of a script are not those of `migrate`, also if they have the names of its options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from millstream.cli.check.migrate import command
from millstream.diagnostics.failure import InvalidInput


@pytest.fixture(autouse=True)
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.py").write_text("")
    (tmp_path / "spark-pipeline.yml").write_text("name: shop\nstorage: file:///lake\n")


def parsed(*words: str) -> dict[str, Any]:
    """The parameters of the command."""
    return command.make_context("migrate", list(words)).params


@pytest.mark.parametrize(
    ("words", "output", "arguments"),
    [
        ("job.py -o shop", "shop", ""),
        ("job.py -o shop 2026 --json", "shop", "2026 --json"),
        ("-o shop job.py --input /in --output /out", "shop", "--input /in --output /out"),
        ("-o shop job.py -o /out", "shop", "-o /out"),
        ("--output=shop job.py -o /out", "shop", "-o /out"),
        ("job.py --output s3a://lake/x", None, "--output s3a://lake/x"),
        ("job.py -- -o /out", None, "-o /out"),
        ("--input raw=job.py job.py --json -q", None, "--json -q"),
    ],
)
def test_words_after_a_script_are_the_scripts(words: str, output: str | None, arguments: str) -> None:
    parameters = parsed(*words.split())

    assert parameters["script"] == Path("job.py")
    assert parameters["output"] == (None if output is None else Path(output))
    assert parameters["arguments"] == tuple(arguments.split())
    assert not parameters["as_json"]


def test_flags_directly_after_a_script_are_of_the_command() -> None:
    parameters = parsed("job.py", "--prove", "-o", "shop", "--no-tests", "--prove-it")

    assert (parameters["prove"], parameters["with_tests"]) == (True, False)
    assert parameters["arguments"] == ("--prove-it",)


def test_a_declarative_project_has_no_arguments() -> None:
    parameters = parsed("spark-pipeline.yml", "--json", "--output", "shop")

    assert (parameters["as_json"], parameters["output"]) == (True, Path("shop"))


def test_an_option_that_goes_to_the_script_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    parsed("job.py", "--output", "shop")

    assert capsys.readouterr().err == (
        "'--output' goes to the script; put options of migrate before its name\n"
    )


@pytest.mark.parametrize("words", ["job.py -o", "job.py --prove -o", "-o"])
def test_an_option_without_its_value_is_refused(words: str) -> None:
    with pytest.raises(click.BadOptionUsage, match="requires an argument"):
        parsed(*words.split())


@pytest.mark.parametrize("words", ["spark-pipeline.yml --prov", "--prov job.py"])
def test_an_unknown_option_of_the_command_is_refused(words: str) -> None:
    with pytest.raises(click.NoSuchOption, match="--prov"):
        parsed(*words.split())


def test_an_address_is_no_folder_for_a_project(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is an address"):
        command.main(["-o", "s3a://lake/x", "job.py"], standalone_mode=False)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["job.py", "spark-pipeline.yml"]


@pytest.mark.parametrize("words", [["job.py"], ["-o", "job", "job.py"]])
def test_a_file_is_no_folder_for_a_project(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "job").write_text("")

    with pytest.raises(InvalidInput, match="job is a file"):
        command.main(words, standalone_mode=False)
