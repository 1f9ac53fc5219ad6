"""The names under which sinks remember the batches they have."""

from __future__ import annotations

from pathlib import Path

from millstream.pipeline.model import Pipeline
from millstream.runtime.recording import sink_keys


def keys(folder: str, *sinks: dict[str, object]) -> list[str]:
    spec = {
        "name": "shop",
        "sources": {"ticks": {"rate": {}}},
        "queries": {"ticks": {"to": list(sinks)}},
        "folder": Path(folder),
    }
    return sink_keys(Pipeline.model_validate(spec, context={"folder": folder}), "ticks")


def test_a_project_that_is_moved_keeps_its_names() -> None:
    assert (
        keys("/here/shop", {"delta": "lake/t"})
        == keys("/there/shop", {"delta": "lake/t"})
        == ["delta:lake/t"]
    )


def test_a_path_outside_the_project_is_told_whole() -> None:
    assert keys("/here/shop", {"delta": "/lake/t"}) == ["delta:/lake/t"]


def test_tables_of_one_name_in_two_databases_are_two_sinks() -> None:
    one, other = (
        {"postgres": {"url": f"postgresql://{host}/shop", "table": "orders"}} for host in ("one", "other")
    )

    assert keys("/shop", one, other) == ["postgres:orders", "postgres:orders#2"]
