"""What a script may not do while it is checked: other programs, signals, files, databases, connections."""

from __future__ import annotations

import atexit
import importlib
import os
import sqlite3
import stat
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import MagicMock

import pytest

from millstream.checking.scripts.interception import sandbox
from millstream.checking.scripts.interception.absent import Absent
from millstream.checking.scripts.interception.monkeypatch import Patches
from millstream.checking.scripts.interception.recording import Recording, StartedQuery
from millstream.checking.scripts.interception.sandbox import ScriptSandbox, WaitReached

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Run = Callable[..., dict[str, object]]

SPAWN = 'os.posix_spawn("/bin/sh", ["sh", "-c", "touch made"], os.environ)'
PROGRAMS = {
    "posix_spawn": SPAWN,
    "posix_spawnp": 'os.posix_spawnp("touch", ["touch", "made"], os.environ)',
    "spawnv": 'os.spawnv(os.P_WAIT, "/usr/bin/touch", ["touch", "made"])',
    "fork": "os.fork() or os._exit(0)",
    "execv": 'os.execv("/bin/true", ["true"])',
    "system": 'os.system("touch made")',
    "popen": 'os.popen("touch made").read()',
    "run": 'subprocess.run(["touch", "made"])',
    "pty": 'pty.spawn(["touch", "made"])',
    "multiprocessing": 'multiprocessing.get_context("spawn").Process(target=print).start()',
    "fork_exec": "multiprocessing.util.spawnv_passfds(b'/bin/true', ['true'], [])",
}
SIGNALS = {"kill": "os.kill(os.getppid(), 0)", "killpg": "os.killpg(os.getpgid(0), 0)"}
CHANGES = {
    "chmod": 'os.chmod("kept", 0o777)',
    "chmod of a path": 'pathlib.Path("kept").chmod(0o777)',
    "chmod of a descriptor": 'os.fchmod(os.open("kept", os.O_RDONLY), 0o777)',
    "chmod in a folder": 'os.chmod("kept", 0o777, dir_fd=os.open(".", os.O_RDONLY))',
    "chown": 'os.chown("kept", 1, 1)',
    "utime": 'os.utime("kept", (1, 1))',
    "setxattr": 'os.setxattr("kept", "user.a", b"1")',
    "truncate": 'os.truncate("kept", 0)',
    "link": 'os.link("kept", "made")',
    "symlink": 'os.symlink("kept", "made")',
    "mkfifo": 'os.mkfifo("made")',
    "mkdir": 'os.mkdir("made")',
    "remove": 'os.remove("kept")',
    "remove in a folder": 'os.remove("kept", dir_fd=os.open(".", os.O_RDONLY))',
    "rename": 'os.rename("kept", "made")',
    "rmdir": 'os.rmdir("folder")',
    "rmtree": 'shutil.rmtree("folder")',
    "move": 'shutil.move("kept", "made")',
    "copy": 'shutil.copy("kept", "made")',
    "write by way of a temporary file": (
        'draft = tempfile.mkstemp()[1]; pathlib.Path(draft).write_text("new"); os.replace(draft, "kept")'
    ),
    "write": 'pathlib.Path("made").write_text("new")',
    "write over": 'with open("kept", "w") as file: file.write("new")',
    "read and write": 'with open("kept", "r+") as file: file.write("new")',
    "write and read": 'with open("kept", "w+") as file: file.write("new")',
    "append and read": 'with open("made", "a+") as file: file.write("new")',
    "create and read": 'with open("made", "x+b") as file: file.write(b"new")',
    "tar": 'tarfile.open("made", "w").close()',
    "zip": 'shutil.make_archive("made", "zip", "folder")',
}
# What Python does without looking at the functions that are replaced.
REFUSED = {
    "a file of C": 'io.FileIO("made", "w")',
    "a database": 'sqlite3.connect("made")',
    "a database by address": 'sqlite3.connect("file:made?mode=rwc", uri=True)',
    "a library": 'ctypes.CDLL("libc.so.6").system(b"touch made")',
    "a library of Python's own": 'ctypes.CDLL(None).system(b"touch made")',
    "a symbol of Python's own": 'ctypes.pythonapi.system(b"touch made")',
    "a function of before": 'BEFORE["chmod"]("kept", 0o777)',
    "a socket": 'with socket.socket() as one: _socket.socket.connect(one, ("127.0.0.1", 9))',
    "a datagram": 'with socket.socket(type=socket.SOCK_DGRAM) as one: one.sendto(b"1", ("127.0.0.1", 9))',
}
IMPORTS = (
    "import _socket, ctypes, io, multiprocessing.util, os, pathlib, pty, shutil, socket, sqlite3, subprocess\n"
    "import tarfile, tempfile, threading\n"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: a file and a folder with one."""
    home = tmp_path / "home"
    (home / "folder").mkdir(parents=True)
    for name in ("kept", "folder/inside"):
        (home / name).write_text("old", encoding="utf-8")
        (home / name).chmod(0o600)
    monkeypatch.chdir(home)
    return home


@pytest.fixture
def run(tmp_path: Path, folder: Path) -> Iterator[Run]:  # noqa: ARG001 - it runs there
    """Runs a text as a script's file under the surroundings of a check."""
    private, spark = tmp_path / "private", tmp_path / "spark"
    private.mkdir()
    spark.mkdir()
    before = {"chmod": os.chmod}

    def execute(text: str, recording: Recording | None = None) -> dict[str, object]:
        names: dict[str, object] = {"BEFORE": before}
        with Patches() as patches:
            ScriptSandbox(recording or Recording(), private, spark).install(patches)
            exec(compile(IMPORTS + text, str(tmp_path / "job.py"), "exec"), names)
        return names

    yield execute
    # Of the surroundings nothing is left: a program may be started again.
    assert os.system("true") == 0


def shape(folder: Path) -> list[tuple[str, int, int, float, str]]:
    """Everything about the files of a folder that a change would show in."""
    messages = []
    for path in sorted([folder, *folder.rglob("*")]):
        visited = path.lstat()
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        messages.append((str(path), visited.st_mode, visited.st_uid, visited.st_mtime, text))
    return messages


@pytest.mark.parametrize("how", PROGRAMS)
def test_a_checked_script_starts_no_other_program(run: Run, folder: Path, how: str) -> None:
    before, children = shape(folder), _children()

    with pytest.raises(OSError, match="a check does not start other programs"):
        run(PROGRAMS[how])

    assert shape(folder) == before
    assert _children() == children


@pytest.mark.parametrize("how", SIGNALS)
def test_a_checked_script_sends_no_signal(run: Run, how: str) -> None:
    with pytest.raises(OSError, match="a check does not send signals"):
        run(SIGNALS[how])


def test_the_signal_of_the_time_limit_reaches_a_checked_script_that_waits(run: Run) -> None:
    start = time.monotonic()

    with pytest.raises(WaitReached):
        run(
            "from millstream.checking.scripts.script_process import time_limit\n"
            "lock = threading.Lock()\n"
            "lock.acquire()\n"
            "with time_limit(0.05):\n"
            "    lock.acquire(timeout=60)"
        )

    assert time.monotonic() - start < 30


@pytest.mark.parametrize("how", CHANGES)
def test_a_checked_script_changes_no_file(run: Run, folder: Path, how: str) -> None:
    before = shape(folder)
    mode = Path(os.devnull).stat().st_mode

    run(CHANGES[how])

    assert shape(folder) == before
    assert stat.S_IMODE(Path(os.devnull).stat().st_mode) == stat.S_IMODE(mode)


@pytest.mark.parametrize("how", REFUSED)
def test_what_goes_past_the_replaced_functions_is_refused(run: Run, folder: Path, how: str) -> None:
    before = shape(folder)

    with pytest.raises(OSError, match="a check "):
        run(REFUSED[how])

    assert shape(folder) == before


@pytest.mark.parametrize(
    ("package", "client"),
    [
        ("confluent_kafka", "Producer"),
        ("confluent_kafka", "SerializingProducer"),
        ("confluent_kafka", "DeserializingConsumer"),
        ("confluent_kafka.cimpl", "Consumer"),
        ("confluent_kafka.admin", "AdminClient"),
    ],
)
def test_a_client_of_kafka_is_not_opened(run: Run, package: str, client: str) -> None:
    recording = Recording()
    before = vars(importlib.import_module(package))[client]
    settings = '{"bootstrap.servers": "127.0.0.1:9", "group.id": "ports"}'

    names = run(
        f"import {package}\n"
        f"opened = {package}.{client}({settings})\n"
        f"class Own({package}.{client}): pass\n"
        f"derived = Own({settings})",
        recording,
    )

    assert [type(names[name]) for name in ("opened", "derived")] == [Absent, Absent]
    assert {doubt.what for doubt in recording.doubts} == {f"what {client} of confluent_kafka does"}
    assert vars(importlib.import_module(package))[client] is before


@pytest.mark.parametrize("target", ["spawn", "os.posix_spawn"])
def test_a_thread_of_the_script_starts_no_program_either(run: Run, folder: Path, target: str) -> None:
    args, children = '("/bin/sh", ["sh", "-c", "touch made"], os.environ)', _children()
    run(
        f"def spawn(*args):\n    {SPAWN}\n"
        f"thread = threading.Thread(target={target}, args={args})\nthread.start()\nthread.join()\n"
    )

    assert not (folder / "made").exists()
    assert _children() == children


def test_at_the_end_of_a_check_nothing_of_the_script_runs_but_a_library_ends_its_own_c(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[object] = []
    monkeypatch.setattr(atexit, "register", lambda function, *args: kept.append((function, *args)))
    library = "import atexit, os; atexit.register(os.getpid, 1); atexit.register(lambda: os.remove('kept'))"

    run(
        f"import atexit\natexit.register(os.remove, 'kept')\nfile = {os.path.__file__!r}\n"
        f"exec(compile({library!r}, file, 'exec'))"
    )

    assert kept == [(os.getpid, 1)]


def test_a_checked_script_that_leaves_at_once_ends_itself_alone(run: Run) -> None:
    with pytest.raises(SystemExit):
        run("os._exit(3)")


@pytest.mark.parametrize(
    "call", ['input("Press Enter to stop")', "signal.pause()", "threading.Event().wait()"]
)
def test_a_script_that_waits_for_its_user_waits_for_its_queries(run: Run, call: str) -> None:
    recording = Recording(queries=[StartedQuery(1, MagicMock())])

    run(f"import signal\n{call}", recording)

    assert [(wait.started, wait.is_bounded) for wait in recording.waits] == [(1, True)]


def test_a_descriptor_that_leads_nowhere_is_not_changed(run: Run) -> None:
    before = Path(os.devnull).stat().st_mode

    run('with open("made", "w") as file:\n    os.fchmod(file.fileno(), 0o600)\n')

    assert Path(os.devnull).stat().st_mode == before


def test_a_checked_script_may_use_temporary_files_and_databases_in_memory(run: Run) -> None:
    names = run(
        "with tempfile.TemporaryDirectory() as folder:\n"
        '    file = pathlib.Path(folder, "a")\n'
        '    file.write_text("1")\n'
        "    file.chmod(0o600)\n"
        '    os.rename(file, pathlib.Path(folder, "b"))\n'
        '    shutil.copy("kept", folder)\n'
        "    listed = sorted(os.listdir(folder))\n"
        'rows = sqlite3.connect(":memory:").execute("SELECT 1").fetchall()\n'
        "left = os.path.exists(folder)\n"
    )

    assert (names["listed"], names["rows"], names["left"]) == (["b", "kept"], [(1,)], False)


@pytest.mark.parametrize(
    ("file", "mode", "texts"),
    [("kept", "r+", ["old", "oldnew"]), ("kept", "a+", ["old", "oldnew"]), ("kept", "w+", ["", "new"])]
    + [("made", mode, ["", "new"]) for mode in ("a+", "w+", "x+")],
)
def test_a_file_that_a_checked_script_writes_and_reads_is_a_copy(
    run: Run, folder: Path, file: str, mode: str, texts: list[str]
) -> None:
    before = shape(folder)

    names = run(
        f"with open({file!r}, {mode!r}) as file:\n    file.seek(0)\n    texts = [file.read()]\n"
        "    file.write('new')\n    file.seek(0)\n    texts.append(file.read())\n"
    )

    assert names["texts"] == texts
    assert shape(folder) == before


def test_a_pipe_and_a_large_file_are_not_copied(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "MOST_BYTES_COPIED", 2)
    os.mkfifo(folder / "pipe")
    # Without a writer, a process that opens the pipe to read it would wait.
    writer = os.open(folder / "pipe", os.O_RDWR | os.O_NONBLOCK)
    before = (folder / "kept").read_text()

    names = run(
        "files = [open(name, 'r+') for name in ('pipe', 'kept')]\n"
        "written = [file.write('new') for file in files]\n"
        "contents = [file.read() for file in files]\n"
        "[file.close() for file in files]\n"
    )

    os.close(writer)
    assert names["written"] == [3, 3]
    assert names["contents"] == ["", ""]
    assert (folder / "kept").read_text() == before


def test_a_missing_file_cannot_be_read_and_written(run: Run) -> None:
    with pytest.raises(FileNotFoundError, match="made"):
        run('open("made", "r+")')


def test_after_a_check_files_and_databases_are_as_before(run: Run, folder: Path) -> None:
    run("pass")

    sqlite3.connect(folder / "made").close()
    (folder / "kept").chmod(0o640)
    tempfile.NamedTemporaryFile(dir=folder).close()

    assert stat.S_IMODE((folder / "kept").stat().st_mode) == 0o640


def _children() -> list[int]:
    """The processes that this one started and that were not yet waited for."""
    listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
    return [int(part) for part in listed.split()]


def test_a_file_by_its_path_in_a_container_is_the_one_of_the_project(run: Run, folder: Path) -> None:
    (folder / "settings.json").write_text("{}", encoding="utf-8")

    names = run('text = pathlib.Path("/opt/app/settings.json").read_text()', Recording(project=folder))

    assert names["text"] == "{}"


def test_a_file_that_no_project_has_is_missing(run: Run, folder: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"/opt/app/settings\.json"):
        run('open("/opt/app/settings.json")', Recording(project=folder))
