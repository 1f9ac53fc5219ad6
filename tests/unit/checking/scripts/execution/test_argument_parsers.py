"""A command line without the arguments that a script requires."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import pytest

from millstream.checking.scripts.execution import argument_parsers
from millstream.checking.scripts.interception.absent import Absent
from millstream.checking.scripts.interception.monkeypatch import Patches
from millstream.checking.scripts.interception.recording import Recording

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def recording() -> Iterator[Recording]:
    with Patches() as patches:
        own = Recording()
        argument_parsers.install(own, patches)
        yield own


def test_required_arguments_are_not_known_and_others_keep_their_defaults(recording: Recording) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("pair", nargs=2, type=int)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--target", required=True)
    parser.add_argument("--state", default="/lake/state")
    parser.add_argument("--note")

    args = parser.parse_args([])

    unknown = (args.source, args.pair, args.files, args.target)
    assert all(isinstance(value, Absent) for value in unknown)
    assert (args.state, args.note) == ("/lake/state", None)
    (doubt,) = recording.doubts
    assert doubt.why.endswith("error: the following arguments are required: source, pair, files, --target")


def test_an_argument_that_is_there_is_kept(recording: Recording) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    parser.add_argument("--target", required=True)

    args = parser.parse_args(["--source", "in"])

    assert args.source == "in"
    assert isinstance(args.target, Absent)
    assert len(recording.doubts) == 1


@pytest.mark.usefixtures("recording")
def test_a_parser_is_as_before_afterwards() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("source", default="unused")
    before = [(action.required, action.nargs, action.default) for action in parser._actions]

    parser.parse_args([])

    assert [(action.required, action.nargs, action.default) for action in parser._actions] == before


@pytest.mark.usefixtures("recording")
@pytest.mark.parametrize("words", [["--nmae", "a"], ["--count", "many", "--name", "a"]])
def test_words_that_a_script_does_not_accept_end_it(words: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", required=True)
    parser.add_argument("--count", type=int)

    with pytest.raises(SystemExit):
        parser.parse_args(words)


@pytest.mark.usefixtures("recording")
def test_a_missing_command_ends_a_script() -> None:
    parser = argparse.ArgumentParser()
    parser.add_subparsers(required=True, dest="command").add_parser("run")

    with pytest.raises(SystemExit):
        parser.parse_args([])
