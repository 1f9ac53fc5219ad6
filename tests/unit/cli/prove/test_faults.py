"""Which faults `prove` can bring about to a pipeline, and what is said of the others."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from millstream.cli.prove.faults import FaultContext, choose_faults, possible_faults


def stage(*, small: bool = True) -> FaultContext:
    points = ("batch.begun", "delta.before", "delta.committed", "postgres.open", "batch.delivered")
    return FaultContext(Path("/shop"), ("postgres",), points, Path("/shop/proof"), is_small=small)


def names(wanted: str | None, at: FaultContext) -> list[str]:
    return [fault.name for fault in choose_faults(possible_faults(at), wanted, at)[0]]


def test_a_pipeline_meets_what_its_sinks_and_servers_can_meet() -> None:
    assert names("all", stage()) == [
        "second-driver",
        "lock-lost",
        "zombie-delta",
        "zombie-postgres",
        "postgres-pause",
        "postgres-stop",
        "postgres-cut",
        "disk-full",
    ]


def test_no_fault_happens_unless_it_is_asked_for() -> None:
    assert names(None, stage()) == []


def test_a_disk_that_cannot_be_made_small_is_left_out_with_a_sentence() -> None:
    at = stage(small=False)

    faults, notes = choose_faults(possible_faults(at), "disk-full,lock-lost", at)

    assert [fault.name for fault in faults] == ["lock-lost"]
    assert "permission to mount" in notes[0]


def test_a_fault_of_a_server_that_is_not_there_is_refused() -> None:
    with pytest.raises(click.UsageError, match="kafka-stop"):
        names("kafka-stop", stage())
