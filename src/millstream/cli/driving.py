"""The driver of a proof: it gets ready, waits for its order, and runs the copy as `millstream run` would."""

from __future__ import annotations

import json
import os
import sys
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from millstream.cli.project import open_project

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from millstream.connectors.elsewhere import Place
    from millstream.pipeline.load import Loaded
    from millstream.pipeline.model import Pipeline
    from millstream.proof.moved import Moved
    from millstream.runtime.checking import Checked

WHAT = "proof.json"
"""The file in the folder of a proof that says which queries it is of, and what its topics begin with."""


@dataclass(frozen=True)
class Project:
    """The spec of a proof, and what its command says about it."""

    spec: Path
    overrides: Sequence[str]
    env_file: Path | None

    def open(self) -> Loaded:
        """Load it; ends the command where it has errors."""
        return open_project(self.spec, self.overrides, self.env_file)

    def driver(self, folder: Path) -> list[str]:
        """The command that starts a driver of the proof in that folder."""
        again = [sys.executable, "-m", "millstream", "prove", "--driver", str(folder), "-f", str(self.spec)]
        again += [part for given in self.overrides for part in ("--set", given)]
        return again + (["--env-file", str(self.env_file)] if self.env_file else [])

    def copied(self, folder: Path) -> tuple[Pipeline, Moved]:
        """The pipeline, and its copy in that folder."""
        pipeline = self.open().pipeline
        assert pipeline is not None, "opened without errors"
        return pipeline, _moved(pipeline, folder)


def drive(folder: Path, project: Project) -> int:
    """Get ready, say so, and run the copy once there is an order; end with 0 when none comes."""
    # Here and not above: `prove` itself starts no query.
    from millstream.cli.run import start
    from millstream.connectors.failpoints import VARIABLE
    from millstream.dashboard.live import Wish
    from millstream.proof.driver import Order
    from millstream.runtime.run import RunOptions

    loaded = project.open()
    assert loaded.pipeline is not None, "opened without errors"
    loaded = replace(loaded, pipeline=_moved(loaded.pipeline, folder).pipeline)
    checked = _get_ready(loaded)
    click.echo(json.dumps({"event": "ready"}))
    order = Order.of(sys.stdin.readline())
    if order is None:
        return 0
    os.environ[VARIABLE] = order.failpoints
    threading.Thread(target=_arm, daemon=True).start()
    options = RunOptions(until_caught_up=order.to_the_end)
    return start(loaded, options, as_json=True, known=checked, wish=Wish(served=False))


def _arm() -> None:
    """Arm what later orders say, as they come."""
    from millstream.connectors.failpoints import VARIABLE
    from millstream.proof.driver import Order

    # Not by sys.stdin: a thread that waits in it keeps the interpreter from ending.
    while said := os.read(0, 1 << 16):
        for line in said.decode().splitlines():
            if order := Order.of(line):
                os.environ[VARIABLE] = order.failpoints


def _get_ready(loaded: Loaded) -> Checked:
    """Do ahead what touches nothing of the copy's: the session, and the check."""
    from millstream.runtime.checking import check
    from millstream.runtime.session import open_session

    pipeline = loaded.pipeline
    assert pipeline is not None, "opened without errors"
    log = pipeline.folder / ".millstream" / "logs" / f"{pipeline.name}.log"
    spark = open_session(pipeline.name, dict(pipeline.spark), log=log)
    return check(loaded, spark)


def _moved(pipeline: Pipeline, folder: Path) -> Moved:
    from millstream.connectors.elsewhere import Place
    from millstream.proof.moved import moved
    from millstream.runtime.run import RunOptions, chosen

    what = json.loads((folder / WHAT).read_text())
    place: Place = Place(folder, what["prefix"])
    return moved(pipeline, chosen(pipeline, RunOptions(select=tuple(what["queries"]))), place)
