"""Variables in a text."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.spec.secrets.interpolation import interpolate

ENV = {"HOST": "broker", "EMPTY": ""}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${HOST}:9092", "broker:9092"),
        ("${env:HOST}", "broker"),
        ("${EMPTY}", ""),
        ("${EMPTY:-x}", "x"),
        ("${NONE:-}", ""),
        ("${NONE:-a:-b}", "a:-b"),
        ("${HOST:?needed}", "broker"),
        ("$$HOME $${HOST}", "$HOME ${HOST}"),
        ("$HOST", "$HOST"),
        ("cost: 5$", "cost: 5$"),
        ("${HOST}${HOST}", "brokerbroker"),
    ],
)
def test_a_variable_becomes_its_value(text: str, value: str) -> None:
    assert interpolate(text, ENV, Path()) == (value, [])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a ${NONE} b", "the variable NONE is not set"),
        ("a ${NONE:?say where} b", "the variable NONE is not set: say where"),
        ("a ${EMPTY:?say where} b", "the variable EMPTY is not set: say where"),
        ("a ${1X} b", "'${1X}' is not a variable"),
        ("a ${} b", "'${}' is not a variable"),
    ],
)
def test_a_variable_without_a_value_is_named_with_its_place(text: str, said: str) -> None:
    _, (unset,) = interpolate(text, ENV, Path())

    assert unset.message == said
    assert text[: unset.start] == "a "
    assert text[unset.stop :] == " b"
    assert unset.fix


def test_a_variable_that_is_never_closed_is_told() -> None:
    _, (unset,) = interpolate("${HOST", ENV, Path())

    assert unset.message == "'${' is opened and never closed"


def test_a_value_is_not_read_again_for_variables() -> None:
    assert interpolate("${A}", {"A": "${B}", "B": "x"}, Path()) == ("${B}", [])


def test_a_secret_may_stand_in_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("S3CR3T\n")
    secret.chmod(0o600)

    assert interpolate("x${file:secret}y", {}, tmp_path) == ("xS3CR3Ty", [])
    assert interpolate(f"${{file:{secret}}}", {}, Path()) == ("S3CR3T", [])


def test_a_secret_that_everybody_can_read_is_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("S3CR3T\n")
    secret.chmod(0o604)

    text, (unset,) = interpolate("${file:secret}", {}, tmp_path)

    assert "S3CR3T" not in text
    assert "can be read by every user" in unset.message
    assert "chmod 600" in unset.fix


@pytest.mark.parametrize("name", ["none", ".", "\0", "x" * 5000])
def test_a_secret_that_cannot_be_read_is_told(tmp_path: Path, name: str) -> None:
    tmp_path.chmod(0o700)

    _, (unset,) = interpolate(f"${{file:{name}}}", {}, tmp_path)

    assert "cannot be read" in unset.message
