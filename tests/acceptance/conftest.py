"""One broker and one database; each test has topics, a database and a project of its own."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

import sweep
from acceptance.oracle import STREAMS
from acceptance.project import Project, adapt, database
from millstream.devstack import stack
from millstream.devstack.servers.topics import create_topics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from millstream.devstack.supervisor.state import Endpoints

EXAMPLE = Path(__file__).parents[2] / "examples" / "ecommerce"
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoints]:
    """The worker's servers; those of a whole sweep are its own, as a test stops them."""
    if not sweep.WHOLE:
        yield request.getfixturevalue("stack")
        return
    folder = tmp_path_factory.mktemp("stack")
    yield stack.up(folder)
    stack.down(folder)


@pytest.fixture(scope="session")
def make_project(
    servers: Endpoints, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], Project]]:
    projects: list[Project] = []

    def make() -> Project:
        number = next(_numbers)
        prefix, name = f"t{number}_", f"shop{number}"
        folder = tmp_path_factory.mktemp("shop") / "ecommerce"
        shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns(".millstream", "lake"))
        adapt(folder, prefix)
        create_topics(servers.kafka, {f"{prefix}{stream}": {} for stream in STREAMS})
        with psycopg.connect(servers.postgres, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        projects.append(Project(folder, servers.kafka, database(servers.postgres, name), prefix))
        return projects[-1]

    yield make
    for project in projects:
        project.close()


@pytest.fixture
def project(make_project: Callable[[], Project]) -> Iterator[Project]:
    result = make_project()
    yield result
    result.close()
