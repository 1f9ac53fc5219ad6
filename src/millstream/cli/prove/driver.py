"""Run the driver process of a proof: get ready, wait for an order, and run the copy like `millstream run`."""

from __future__ import annotations

import json
import os
import sys
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from millstream.cli import signals
from millstream.cli.project import open_project

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.checking.check import CheckResult
    from millstream.connectors.api.values.sandbox import Sandbox
    from millstream.pipeline.model import Pipeline
    from millstream.pipeline.spec_file import LoadedSpec
    from millstream.proof.sandbox import SandboxCopy

WHAT = "proof.json"
"""The file in the folder of a proof with the names of its queries and the prefix of its topics."""


@dataclass(frozen=True)
class ProveProject:
    """The spec of a proof, and the options that change the spec."""

    spec: Path
    overrides: Sequence[str]
    env_file: Path | None

    def open(self) -> LoadedSpec:
        """Load the spec. Ends the command if it has errors."""
        return open_project(self.spec, self.overrides, self.env_file)

    def driver(self, folder: Path) -> list[str]:
        """Return the command that starts a driver of the proof in that folder."""
        command = [sys.executable, "-m", "millstream", "prove", "--driver", str(folder), "-f", str(self.spec)]
        command += [part for override in self.overrides for part in ("--set", override)]
        return command + (["--env-file", str(self.env_file)] if self.env_file else [])

    def copied(self, folder: Path) -> tuple[Pipeline, SandboxCopy]:
        """Return the pipeline, and its copy in that folder."""
        pipeline = self.open().pipeline
        assert pipeline is not None, "opened without errors"
        return pipeline, _copy_pipeline(pipeline, folder)


def run_driver(folder: Path, project: ProveProject) -> int:
    """Get ready, report it, and run the copy when an order arrives. Returns 0 if no order arrives."""
    # Imported here because `prove` itself starts no query.
    from millstream.cli.run.run import start
    from millstream.connectors import failpoints
    from millstream.dashboard.live_run import PageOptions
    from millstream.engine.background_threads import BackgroundThread
    from millstream.engine.run import RunOptions
    from millstream.proof.driver import Order

    loaded = project.open()
    assert loaded.pipeline is not None, "opened without errors"
    loaded = replace(loaded, pipeline=_copy_pipeline(loaded.pipeline, folder).pipeline)
    spark, checked = _get_ready(loaded)
    click.echo(json.dumps({"event": "ready"}))
    order = Order.of(sys.stdin.readline())
    if order is None:
        return 0
    if order.backfill:
        return _backfill(spark, loaded, checked)
    failpoints.arm(order.failpoints)
    BackgroundThread("orders", _arm).start()
    options = RunOptions(until_caught_up=order.to_the_end)
    page = PageOptions(is_served=False, is_recorded=False)
    return start(loaded, options, as_json=True, known=checked, page_options=page)


def _backfill(spark: SparkSession, loaded: LoadedSpec, checked: CheckResult) -> int:
    """Backfill past ranges until another order arrives or the proof has ended."""
    from millstream.cli.prove.backfills import Backfills
    from millstream.engine.background_threads import BackgroundThread
    from millstream.spark.session import stop_session

    assert loaded.pipeline is not None, "opened without errors"
    ended = threading.Event()

    def listen() -> None:
        os.read(0, 1)
        ended.set()

    BackgroundThread("orders", listen).start()
    try:
        Backfills(spark, loaded.pipeline, checked.queries).run(ended)
    finally:
        stop_session(spark)
    return 0


def _arm() -> None:
    """Arm the failpoints of each later order. Exit at once if the proof, which holds the other end, has ended."""
    from millstream.connectors import failpoints
    from millstream.proof.driver import Order

    # Reads the descriptor, because a thread that waits in sys.stdin keeps the interpreter from exiting.
    while received := os.read(0, 1 << 16):
        for line in received.decode().splitlines():
            if order := Order.of(line):
                failpoints.arm(order.failpoints)
    os._exit(signals.INTERRUPTED)


def _get_ready(loaded: LoadedSpec) -> tuple[SparkSession, CheckResult]:
    """Open the session and check the spec: work that does not touch the copy."""
    from millstream.checking.check import check
    from millstream.spark.session import open_session

    pipeline = loaded.pipeline
    assert pipeline is not None, "opened without errors"
    log = pipeline.folder / ".millstream" / "logs" / f"{pipeline.name}.log"
    spark = open_session(pipeline.name, dict(pipeline.spark), log=log)
    return spark, check(loaded, spark)


def _copy_pipeline(pipeline: Pipeline, folder: Path) -> SandboxCopy:
    from millstream.connectors.api.values.sandbox import Sandbox
    from millstream.engine.run import RunOptions, choose_queries
    from millstream.proof.sandbox import copy_to_sandbox

    settings = json.loads((folder / WHAT).read_text())
    sandbox: Sandbox = Sandbox(folder, settings["prefix"])
    return copy_to_sandbox(
        pipeline, choose_queries(pipeline, RunOptions(select=tuple(settings["queries"]))), sandbox
    )
