"""`millstream demo`: run the e-commerce example with a broker, a database and generated traffic."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from millstream.cli.init import copy_example
from millstream.cli.messages import verbose_run
from millstream.cli.progress import ProgressReporter
from millstream.cli.project import SPEC, open_project
from millstream.cli.signals import Deadline
from millstream.diagnostics.failure import InvalidInput, MillstreamError, NotReady
from millstream.spec.duration import Duration
from millstream.spec.secrets.interpolation import list_references

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

EXAMPLE = "ecommerce"
FOLDER = Path(".millstream") / "demo" / EXAMPLE
# The data of a stopped demo has no value: its batches get GRACEFUL seconds to finish, its other work FINAL seconds,
# and then its servers SERVERS_GRACE seconds. Together they stay below the ten seconds that the help text promises.
GRACEFUL, FINAL, SERVERS_GRACE = 3.0, 3.0, 2.5
# Seconds that sent records may take to reach the broker.
PATIENCE = 30.0
# Seconds that the traffic process may take to end once its pipe is closed; it gives itself two.
CLOSING = 4.0
# Seconds to wait for an earlier demo to end.
WAIT = 10.0
_LOOK = 0.1
# The funnel's column that counts each topic of the generator.
COUNTS = {"clicks": "click_count", "cart_events": "cart_count", "purchases": "purchase_count"}


@click.command("demo", short_help="Run the e-commerce example with its servers and traffic.")
@click.option(
    "--for",
    "length",
    metavar="TIME",
    help="Stop after this time, such as 60s, and print the result: the sales funnel of the shop.",
)
@click.option(
    "--rate", type=click.FloatRange(1), help="Events per second. [default: the rate in traffic.yml]"
)
@verbose_run
def command(length: str | None, rate: float | None, *, verbose: bool) -> int:
    """Run an example: a local Kafka broker and Postgres server, generated events of a shop, and a pipeline.

    All files are in .millstream/demo; each demo first deletes this folder. Variables such as KAFKA and
    POSTGRES_URL have no effect. Ctrl-C or closing the terminal stops everything within ten seconds. After the
    first demo, one process may remain for about a minute: it creates an archive of Java classes that makes
    later starts of Spark faster. Set MILLSTREAM_ARCHIVE=use to prevent this.
    """
    from millstream.cli.run.run import start
    from millstream.devstack import stack
    from millstream.engine.run import RunOptions
    from millstream.spark import cds_archive

    seconds = _seconds(length)
    folder = FOLDER.absolute()
    # The process that creates a class-data archive ends with the demo. Only if Ctrl-C ends the demo, or it ends by
    # itself, that process may continue, unless the user has chosen otherwise.
    may_continue = "MILLSTREAM_ARCHIVE" not in os.environ
    os.environ.setdefault("MILLSTREAM_ARCHIVE", "attached")

    def release_training() -> None:
        is_asked_by_user = deadline.first_signal in (None, signal.SIGINT)
        if may_continue and is_asked_by_user and cds_archive.release_training():
            click.echo(
                "in the background, for about a minute: an archive of Java classes, from which Spark starts faster",
                err=True,
            )

    cds_archive.announce_start()
    steps = ProgressReporter()
    with Deadline(GRACEFUL, FINAL, release_training) as deadline, ExitStack() as running:
        running.callback(release_training)  # after all else has ended
        lock = running.enter_context(_lock(folder.parent, steps))
        with suppress(MillstreamError):
            stack.down(folder)
        _renew(folder)
        _unset_variables(folder)
        running.callback(stack.down, folder)
        stack.up(folder, lambda _: _needs(folder), steps.show, attached=True, grace=SERVERS_GRACE)
        steps.clear()
        traffic = TrafficProcess(folder, rate, lock)
        running.callback(traffic.close)

        def afterwards() -> RunOptions | None:
            """Stop the traffic when the time is over, and read the topics to the end."""
            return RunOptions(until_caught_up=True) if traffic.end() else None

        loaded = open_project(folder)
        code = start(loaded, RunOptions(seconds=seconds), verbose=verbose, afterwards=afterwards)
        summary = traffic.summary
        if code == 0:
            _report(loaded.pipeline, summary)
        click.echo(
            f"the project is {FOLDER}; make it yours: millstream init my-shop --from {EXAMPLE}", err=True
        )
    return code


def _renew(folder: Path) -> None:
    """Replace the folder of the last demo. The result of its check stays: a run looks whether it still holds."""
    from millstream.checking.passed_check import FILE

    passed = folder / FILE
    former_result = passed.read_bytes() if passed.is_file() else None
    shutil.rmtree(folder, ignore_errors=True)
    copy_example(EXAMPLE, folder)
    if former_result is not None:
        passed.parent.mkdir(exist_ok=True)
        passed.write_bytes(former_result)


def _unset_variables(folder: Path) -> None:
    """Remove the variables of the example's spec from the environment of this process and of its children.

    They have higher precedence than the local stack, so that the demo would use another broker, database or folder.
    """
    for reference in list_references((folder / SPEC).read_text(encoding="utf-8")):
        os.environ.pop(reference.name, None)


class TrafficProcess:
    """The traffic generator, in a child process that ends with this one.

    The child also holds the file descriptor `lock`, if there is one, so that no other demo starts while it can
    still send.
    """

    def __init__(self, folder: Path, rate: float | None, lock: int | None = None) -> None:
        logs = folder / ".millstream" / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        self.summary: Mapping[str, Any] | None = None
        self._log = logs / "traffic.log"
        pace = [] if rate is None else ["--rate", str(rate)]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "millstream",
                    "traffic",
                    "-f",
                    str(folder),
                    "--json",
                    "--attached",
                    *pace,
                ],
                # Nothing is written to this pipe. The system closes it when this process ends, which stops the child.
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                # Ctrl-C goes to the run, which ends the traffic after itself.
                start_new_session=True,
                pass_fds=[] if lock is None else [lock],
            )

    def end(self) -> bool:
        """Stop sending and wait until all is sent; True at the first call.

        Raises NotReady when the broker does not take what was sent.
        """
        if self.summary is not None:
            return False
        self._process.send_signal(signal.SIGINT)
        try:
            code = self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.close()
            raise NotReady(
                f"the broker did not accept all generated records within {PATIENCE:.0f} seconds", self._fix()
            ) from None
        if code:
            raise NotReady(f"the traffic ended early: {self._last_words()}", self._fix())
        assert self._process.stdout is not None
        self.summary = json.loads(self._process.stdout.read())
        return True

    def close(self) -> None:
        """Stop the traffic at once, even if records are unsent. Does nothing if it has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(CLOSING)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _last_words(self) -> str:
        """Return the reason for the end from the log."""
        lines = [line.strip() for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        errors = [line.removeprefix("millstream: ") for line in lines if line.startswith("millstream: ")]
        return (errors or lines or ["its log is empty"])[-1]

    def _fix(self) -> str:
        return f"look at {self._log} and at the broker's log, {FOLDER}/.millstream/stack/logs/kafka.log"


@contextmanager
def _lock(folder: Path, steps: ProgressReporter) -> Iterator[int]:
    """Lock the folder of the demo once an earlier demo has ended. Raises NotReady if one is running.

    Yields the lock's file descriptor. A child process that inherits it holds the lock until the child ends.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as stream:
        stop = time.monotonic() + WAIT
        while True:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > stop:
                    raise NotReady(
                        f"another demo is running in {folder}",
                        "end it with Ctrl-C, or start this one in another folder",
                    ) from None
                steps.show("waiting for an earlier demo to end")
                # Not a blocking lock: this wait ends after a while, and with Ctrl-C.
                time.sleep(_LOOK)
            else:
                break
        yield stream.fileno()


def _needs(folder: Path) -> list[Any]:
    """Return the topics that the example reads."""
    pipeline = open_project(folder).pipeline
    assert pipeline is not None
    return [need for entry in pipeline.sources.values() for need in entry.source.needs()]


def _report(pipeline: Any, summary: Mapping[str, Any] | None) -> None:
    """Print the funnel and compare it with the records that were sent."""
    from millstream.cli.table import format_table

    result = pipeline.queries["funnel"].to[0].sink.rows(limit=1000)
    if result is None:
        return
    names, rows = result
    rows = sorted(rows, key=lambda row: str(row[names.index("window_start")]))
    click.echo(format_table(names, rows), nl=False)
    for sent_counts in (summary or {}).get("topics", []):
        topic = sent_counts["topic"]
        counted = sum(int(row[names.index(COUNTS[topic])]) for row in rows)
        sent_total = sent_counts["good"] + sent_counts["late"]
        dropped = sent_total - counted
        verdict = "agrees" if 0 <= dropped <= sent_counts["late"] else "DOES NOT AGREE"
        click.echo(
            f"{topic}: {sent_counts['sent']:,} sent = {counted:,} counted + {dropped:,} too late + "
            f"{sent_counts['duplicates']:,} repeated + {sent_counts['malformed']:,} malformed: {verdict}"
        )


def _seconds(length: str | None) -> float | None:
    try:
        return None if length is None else Duration(length).seconds
    except ValueError as error:
        raise InvalidInput(str(error), "write it as 60s or '5 minutes'") from error
