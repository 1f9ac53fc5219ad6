"""A process that is killed while it maintains a table of dead letters: nothing is lost, doubled, or left behind."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import delta_letters as letters
from millstream.connectors.delta.commit import maintenance
from millstream.connectors.delta.dead_letter_table import purge
from millstream.spec.location import Location

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

INTERVAL = 6
TEXT = "the record of a customer who wants to be forgotten"

# A thread looks at the table's folder without a pause, and kills the process once it sees the moment.
DYING = """
import os, signal, sys, threading
from pathlib import Path
from deltalake import DeltaTable
from millstream.connectors.delta.commit import maintenance

folder, moment, interval = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
maintenance.MOST_SMALL, maintenance.DELETION_INTERVAL = 1, 0.0
log = folder / "_delta_log"
before = {file.name for file in folder.rglob("*")}

def is_reached():
    data, entries = os.listdir(folder), os.listdir(log)
    new = [name for name in data if name.startswith("part-") and name not in before]
    return {
        "file": lambda: bool(new),
        "commit": lambda: f"{interval + 1:020}.json" in entries,
        "checkpoint": lambda: any("checkpoint" in name for name in entries),
        "log": lambda: f"{0:020}.json" not in entries,
        "deletion": lambda: False,
    }[moment]()

def watch():
    while not is_reached():
        pass
    os.kill(os.getpid(), signal.SIGKILL)

deleted = []

def hear(event, arguments):
    if event == "os.remove" and moment == "deletion" and "/part-" in str(arguments[0]):
        deleted.append(arguments)
        if len(deleted) > interval // 2:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(hear)
table = DeltaTable(folder)
watching = threading.Thread(target=watch, daemon=True)
watching.start()
sys.setswitchinterval(1e-5)
maintenance.TableMaintenance(folder).run(table)
watching.join()
"""


@pytest.mark.parametrize("moment", ["file", "commit", "checkpoint", "log", "deletion"])
def test_each_dead_letter_is_there_once_and_can_be_deleted(
    tmp_path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "INTERVAL", INTERVAL)
    properties = dict.fromkeys(maintenance.SHORT_HISTORY, "interval 0 seconds")
    monkeypatch.setattr("millstream.connectors.delta.dead_letter_writer.PROPERTIES", properties)
    folder = tmp_path / "letters"
    writer = letters.writer_of(folder)
    with monkeypatch.context() as unmaintained:
        unmaintained.setattr("millstream.connectors.delta.commit.maintenance.is_due", lambda _: False)
        for batch in range(INTERVAL + 1):
            letters.keep(writer, batch, value=TEXT.encode())
    command = [sys.executable, "-c", DYING, str(folder), moment, str(INTERVAL)]
    killed = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr

    copied = tmp_path / "deleted at once"
    shutil.copytree(folder, copied)
    purge(Location(copied), None, None)
    assert letters.files_with(copied, TEXT.encode()) == []

    # The next start repeats the last batch, and continues until after the next maintenance.
    writer = letters.writer_of(folder)
    for batch in range(INTERVAL, 3 * INTERVAL):
        letters.keep(writer, batch, value=TEXT.encode())

    assert letters.read_batches(folder) == list(range(3 * INTERVAL))
