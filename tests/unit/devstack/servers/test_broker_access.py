"""What happens to the local broker where the class that keeps other users away cannot be had."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.devstack.servers import broker_access
from millstream.diagnostics.failure import NotReady
from millstream.spark.java_discovery import Java

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Java:
    """A Java that compiles nothing."""
    binary = tmp_path / "java" / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text("#!/bin/sh\necho 'Error: Could not find or load main class' >&2\nexit 1\n")
    binary.chmod(0o755)
    table = tmp_path / "tcp"
    table.touch()
    monkeypatch.setattr(broker_access, "_TABLE", str(table))
    monkeypatch.setenv("MILLSTREAM_HOME", str(tmp_path / "cache"))
    return Java(tmp_path / "java", 17, "the test")


def test_a_broker_that_could_not_be_guarded_is_not_started(java: Java, tmp_path: Path) -> None:
    with pytest.raises(NotReady, match="could not be compiled: Error: Could not find or load main class"):
        broker_access.compile_access_check(java, [], lambda _: None)

    assert list((tmp_path / "cache" / "broker-access").iterdir()) == []


def test_a_compiled_folder_that_lost_its_class_is_not_used(java: Java) -> None:
    text = '#!/bin/sh\nfor last; do :; done\nmkdir -p "$last/org/apache/kafka/common/network"\n'
    java.binary.write_text(
        text + 'touch "$last/org/apache/kafka/common/network/PlaintextChannelBuilder.class"\n'
    )
    folder = broker_access.compile_access_check(java, [], lambda _: None)
    assert folder is not None
    next(folder.rglob("*.class")).unlink()

    with pytest.raises(NotReady, match="is incomplete"):
        broker_access.compile_access_check(java, [], lambda _: None)


def test_where_the_system_does_not_say_whose_a_connection_is_the_user_is_told(
    java: Java, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_access, "_TABLE", str(tmp_path / "absent"))
    messages: list[str] = []

    assert broker_access.compile_access_check(java, [], messages.append) is None
    assert messages == [
        "every user of this machine can reach the broker: the system does not report the owner of a connection"
    ]
