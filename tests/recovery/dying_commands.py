"""A process that kills itself with commands at their failpoints: `python dying_commands.py CASES LOG WRITERS LAST`.

CASES is JSON. Each case is a list: a folder with a `pipeline.yml`, the words of a command, a failpoint, and at which
of its passes the command stays there. `run` without more words is a run until all is read. WRITERS are those of
`dying_writer.py`, and LAST is the number of their last batch. All start one after the other, each in a thread of its
own, and wait at their failpoints. Once all of them wait there, SIGKILL ends the process: one JVM dies for all cases.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if __name__ == "__main__":
    # The folder of the tests, as in a test.
    sys.path[0] = str(Path(__file__).parents[1])

from commands import call, shared_spark
from millstream.connectors import failpoints
from millstream.spark.session import open_session
from millstream.spark.session_scope import separate_session
from recovery import same_process
from recovery.dying_writer import DyingWriter
from small_batches import SMALL_BATCHES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from recovery.dying_writer import WriterCase

# A folder, words, a failpoint and the number of its pass.
Case = tuple[str, tuple[str, ...], str, int]
RUN = ("run",)


@dataclass(eq=False)
class Dying(threading.Thread):
    """One command, up to the point at which it waits for its death."""

    folder: Path
    words: tuple[str, ...]
    point: str
    time: int
    spark: SparkSession
    passed: int = 0
    reached: bool = False
    ended: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        super().__init__(daemon=True)

    def run(self) -> None:
        """Run the command, and tell when it went wrong or past its point."""
        try:
            if self.words == RUN:
                # A session has no two queries of one name.
                with separate_session(self.spark, {}) as own:
                    same_process.catch_up(own, self.folder)
            else:
                done = call(self.folder, *self.words, env=os.environ)
                sys.__stderr__.write(f"{self.words} ended with {done.returncode}\n{done.both}\n")
        except BaseException:  # noqa: BLE001 - whatever it is, the test shows it
            traceback.print_exc(file=sys.__stderr__)
        self.ended.set()

    def wait_for_death(self) -> None:
        """Wait, as this command is where it is to die."""
        self.reached = True
        self.ended.set()
        threading.Event().wait()


class WaitingHere(dict[str, Any]):
    """What is armed: the failpoint of the command that started last, and that of each writer in its last batch."""

    command: Dying | None = None

    def __contains__(self, point: object) -> bool:
        writer = threading.current_thread()
        if isinstance(writer, DyingWriter):
            if writer.is_last and writer.point == point:
                writer.wait_for_death()
            return False
        command = self.command
        if command is not None and point == command.point:
            command.passed += 1
            if command.passed == command.time:
                command.wait_for_death()
        return False


def main(cases: Iterable[Case], log: str, writers: Iterable[WriterCase], last: int) -> int:
    conf = {"spark.master": "local[2]", "spark.driver.memory": "1g", **SMALL_BATCHES}
    spark = open_session("dying", conf, Path(log))
    armed = WaitingHere()
    failpoints._parse_armed = lambda _: armed
    missed: list[tuple[str, str]] = []
    for name, settings, mode, point in writers:
        writer = DyingWriter(name, settings, mode, point)
        writer.start_with(spark, last)
        writer.ended.wait()
        if not writer.reached:
            missed.append((name, point))
    with shared_spark(spark):
        for folder, words, point, time in cases:
            armed.command = Dying(Path(folder), tuple(words), point, time, spark)
            armed.command.start()
            armed.command.ended.wait()
            if not armed.command.reached:
                missed.append((folder, point))
    if not missed:
        os.kill(os.getpid(), signal.SIGKILL)
    sys.__stderr__.write(f"never where they were to die: {missed}\n")
    return 1


def die(cases: Iterable[Case], log: Path, writers: Iterable[WriterCase] = (), last: int = 0) -> None:
    """Start the process and wait for its death. Fails if a command or a writer is never where it is to die."""
    words = [json.dumps(list(cases)), str(log), json.dumps(list(writers)), str(last)]
    process = subprocess.run(
        [sys.executable, __file__, *words], capture_output=True, text=True, timeout=600, check=False
    )
    assert process.returncode == -signal.SIGKILL, process.stderr


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4])))
