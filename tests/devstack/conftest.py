"""Projects with real servers, which are stopped whatever a test did."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from millstream.devstack import stack
from millstream.devstack.supervisor.state import Home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from millstream.devstack.supervisor.process import Identity

COMMAND = str(Path(sys.executable).parent / "millstream")
SPEC = """
name: shop
sources:
  events:
    kafka: {bootstrap_servers: "${KAFKA}", subscribe: events}
    schema: {id: string}
queries:
  events:
    to: [{console: {}}]
"""
TRAFFIC = """
streams:
  events: {rate: 50, partitions: 2, fields: {id: uuid}, duplicates: {share: 0.1}, malformed: {share: 0.1}}
"""


@dataclass
class Project:
    """A folder with a spec, and the command line run for it."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict)
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def call(self, *words: str, under: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*under, COMMAND, *words, "-f", str(self.folder)],
            capture_output=True,
            text=True,
            env=self._environment(),
            timeout=100,
            check=False,
        )

    def up(self, *words: str, under: tuple[str, ...] = ()) -> dict[str, str]:
        result = self.call("up", "--detach", "--json", *words, under=under)
        assert result.returncode == 0, result.stderr
        data: dict[str, str] = json.loads(result.stdout)
        return data

    def attach(self, *servers: str) -> subprocess.Popen[str]:
        """An attached `up` of all servers or these, which answer."""
        child = subprocess.Popen(
            [COMMAND, "up", *servers, "--json", "-f", str(self.folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=self._environment(),
        )
        self.started.append(child)
        assert child.stdout
        assert "kafka" in json.loads(child.stdout.readline())
        return child

    def processes(self) -> list[Identity]:
        """The guardian and the servers."""
        state = Home(self.folder).state()
        assert state
        return [state.guardian, *(server.process for server in state.servers.values() if server.process)]

    def servers(self) -> dict[str, Any]:
        return {status.name: status for status in stack.status(self.folder)}

    def _environment(self) -> dict[str, str]:
        values = {key: value for key, value in os.environ.items() if key not in ("KAFKA", "POSTGRES_URL")}
        return {**values, **self.env}


@pytest.fixture(scope="session")
def make_project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Project]]:
    projects: list[Project] = []

    def make(**env: str) -> Project:
        folder = tmp_path_factory.mktemp("project")
        (folder / "pipeline.yml").write_text(SPEC)
        (folder / "traffic.yml").write_text(TRAFFIC)
        projects.append(Project(folder, env))
        return projects[-1]

    yield make
    for project in projects:
        for child in project.started:
            with contextlib.suppress(ProcessLookupError):
                child.send_signal(signal.SIGKILL)
            child.wait()
            if child.stdout:
                child.stdout.close()
        stack.down(project.folder)


@pytest.fixture
def project(make_project: Callable[..., Project]) -> Project:
    return make_project()


@pytest.fixture(scope="session")
def running(make_project: Callable[..., Project]) -> tuple[Project, dict[str, str]]:
    """One stack for the tests that only use it."""
    shared = make_project()
    return shared, shared.up()
