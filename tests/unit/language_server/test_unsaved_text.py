"""Spark checks files, so its findings are shown only in a document without unsaved changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millstream.language_server.check_queue import CheckRequest
from millstream.language_server.server import MillstreamServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SPEC = """\
name: shop
sources:
  orders: {rate: {}}
queries:
  orders: {output_mode: append, trigger: 5 seconds, to: {console: }}
"""
FINDINGS = [{"code": "MS110"}]


class RecordedCheck:
    """A check with Spark that records the text of each file, and then lets something happen."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.afterwards: Callable[[], object] = lambda: None

    def check(self, path: Path) -> dict[str, Any]:
        """Return one finding."""
        self.texts.append(path.read_text())
        self.afterwards()
        return {"findings": FINDINGS}


class RecordedLoop:
    """An event loop that records the findings to publish."""

    def __init__(self) -> None:
        self.published: list[list[dict[str, Any]]] = []

    def call_soon_threadsafe(self, _: object, __: CheckRequest, findings: list[dict[str, Any]]) -> None:
        """Record the findings to publish."""
        self.published.append(findings)


@pytest.fixture
def spark() -> RecordedCheck:
    return RecordedCheck()


@pytest.fixture
def server(spark: RecordedCheck) -> Iterator[MillstreamServer]:
    server = MillstreamServer(lambda _: {}, spark)  # type: ignore[arg-type]
    server.loop = RecordedLoop()  # type: ignore[assignment]
    yield server
    server.queue.close()


def published(server: MillstreamServer) -> list[list[dict[str, Any]]]:
    """Return the findings of each check, in order."""
    return server.loop.published  # type: ignore[union-attr]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_saved_text_is_checked_with_spark(
    tmp_path: Path, server: MillstreamServer, spark: RecordedCheck, ending: str
) -> None:
    path = tmp_path / "pipeline.yml"
    path.write_bytes(b"\xef\xbb\xbf" + SPEC.replace("\n", ending).encode())

    server.run_check(CheckRequest(path.as_uri(), SPEC, is_saved=True))

    assert len(spark.texts) == 1
    assert published(server)[-1] == FINDINGS


def test_an_unsaved_text_is_not_checked_with_spark_if_another_file_is_saved(
    tmp_path: Path, server: MillstreamServer, spark: RecordedCheck
) -> None:
    path = tmp_path / "pipeline.yml"
    path.write_text(SPEC)

    server.run_check(CheckRequest(path.as_uri(), f"# a line\n{SPEC}", is_saved=True))

    assert spark.texts == []
    assert FINDINGS not in published(server)


def test_findings_are_not_shown_if_the_file_changed_during_the_check(
    tmp_path: Path, server: MillstreamServer, spark: RecordedCheck
) -> None:
    path = tmp_path / "pipeline.yml"
    path.write_text(SPEC)
    spark.afterwards = lambda: path.write_text(f"# a line\n{SPEC}")

    server.run_check(CheckRequest(path.as_uri(), SPEC, is_saved=True))

    assert spark.texts == [SPEC]
    assert FINDINGS not in published(server)
