"""Try one example as a person would: copy it, send its traffic, run it, look at its sinks."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.cli.explain.schema import write_schema
from millstream.cli.init import copy_example, examples_folder
from trials.comparing import Row, differences, found_instead, rewritten
from trials.expected import FILE, Size, read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trials.stage import Stage

# More than any example makes.
MOST_ROWS = 100_000
_LONGEST = 600.0
# What a spec reads of the outer world comes from the stage; of the caller's variables these are kept.
_KEPT = ("PATH", "HOME", "LANG", "VIRTUAL_ENV", "JAVA_HOME", "JDK_JAVA_OPTIONS", "TMPDIR", "CI")
_ROWS_OF_ERROR = 12


class TrialFailed(Exception):
    """A command of a trial ended badly: what it was, and its last words."""


@dataclass
class Trial:
    """What came of an example: `first` is the seconds from the command to the first batch with output."""

    name: str
    size: str
    first: float | None = None
    rows: dict[str, list[Row]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Is everything as it was expected?"""
        return not self.wrong


def declared(name: str, size: str) -> Size | None:
    """What an example's expected.yml says of a size; None when it says nothing."""
    path = examples_folder() / name / FILE
    return read(path)[0].sizes.get(size) if path.is_file() else None


def attempt(name: str, size: str, stage: Stage, folder: Path) -> Trial:
    """Try an example in an empty folder, and compare. A command that fails is a difference."""
    trial, expected = Trial(name, size), declared(name, size)
    assert expected is not None, f"{name} has no size {size}"
    try:
        with stage.room(f"example_{name}") as room:
            _play(trial, expected, room, folder)
    except (TrialFailed, subprocess.TimeoutExpired) as failed:
        trial.wrong.append(str(failed))
        return trial
    for text, stored in expected.show.items():
        trial.wrong += [f"{text}: {difference}" for difference in differences(stored, trial.rows[text])]
    return trial


def update(trial: Trial) -> bool:
    """Write the numbers that a trial gave into the example's file; True when it differs now."""
    path = examples_folder() / trial.name / FILE
    expected, document = read(path)
    new: dict[Any, Any] = {}
    for item, stored in expected.sizes[trial.size].show.items():
        if item in trial.rows:
            where = ("sizes", trial.size, "show", item)
            new |= found_instead(stored, trial.rows[item], where)
    text = rewritten(document, new)
    path.write_text(text, encoding="utf-8")
    return text != document.text


def _play(trial: Trial, wanted: Size, room: Stage, folder: Path) -> None:
    copy_example(trial.name, folder)
    write_schema(folder)
    _millstream(folder, "up", "--detach", "--kafka", room.kafka, "--postgres-url", room.postgres)
    for command in wanted.prepare:
        _call(_words(command), folder)
    with ExitStack() as beside:
        for command in wanted.beside:
            process = subprocess.Popen(_words(command), cwd=folder, env=_environment())
            beside.callback(process.wait, 10)
            beside.callback(process.terminate)
        if wanted.traffic is not None:
            _millstream(folder, "traffic", *wanted.traffic)
        trial.first = _run(folder, wanted.run)
    for text in wanted.show:
        query, _, kind = text.partition("/")
        millstream = _millstream(
            folder, "show", query, "--json", "--limit", str(MOST_ROWS), *(["--sink", kind] if kind else [])
        )
        trial.rows[text] = [json.loads(line) for line in millstream.splitlines()]


def _run(folder: Path, words: Sequence[str]) -> float | None:
    """Run the pipeline to its end; gives the seconds to the first batch that had output."""
    output = folder / ".millstream" / "run.log"
    first: float | None = None
    failures: list[str] = []
    began = time.monotonic()
    command = [sys.executable, "-m", "millstream", "run", "--json", "--no-page", *words]
    with output.open("w") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=_environment(), stdout=subprocess.PIPE, stderr=log, text=True
        )
        assert process.stdout is not None
        try:
            with process.stdout as events:
                for line in events:
                    event = json.loads(line)
                    if first is None and event["event"] == "batch_committed" and _gave_rows(event):
                        first = time.monotonic() - began
                    if event["event"] == "query_failed":
                        failures.append(f"{event['query']}: {event['reason']}")
            code = process.wait(_LONGEST)
        finally:
            # One that has ended is not touched.
            process.kill()
    if code != 0:
        raise TrialFailed(
            f"millstream run ended with {code}: {' / '.join(failures) or _last(output.read_text())}"
        )
    return first


def _gave_rows(event: Row) -> bool:
    """Did a batch write rows? Where nobody counted them, did it read some?"""
    return bool(event["rows_in"] if event["rows_out"] is None else event["rows_out"])


def _millstream(folder: Path, *words: str) -> str:
    return _call([sys.executable, "-m", "millstream", *words], folder)


def _call(words: Sequence[str], folder: Path) -> str:
    result = subprocess.run(
        words,
        cwd=folder,
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=_LONGEST,
        check=False,
    )
    if result.returncode != 0:
        # Not its last words alone: who looks at a table of CI has nothing else.
        text = " ".join(words).replace(sys.executable, "python").replace("python -m millstream", "millstream")
        raise TrialFailed(f"{text} ended with {result.returncode}: {_last(result.stderr or result.stdout)}")
    return result.stdout


def _words(command: str) -> list[str]:
    """A command without a shell; its Python is this one."""
    words = shlex.split(command)
    return [sys.executable if words[0] in ("python", "python3") else words[0], *words[1:]]


def _environment() -> dict[str, str]:
    """The caller's, less what a spec might read; `millstream` is the one beside this Python."""
    values = {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT or name.startswith(("MILLSTREAM_", "LC_", "XDG_"))
    }
    return {**values, "PATH": os.pathsep.join([str(Path(sys.executable).parent), values.get("PATH", "")])}


def _last(said: str) -> str:
    return " / ".join(line.strip() for line in said.strip().splitlines()[-_ROWS_OF_ERROR:])
