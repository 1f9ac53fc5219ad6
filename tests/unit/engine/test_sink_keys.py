"""The names under which sinks remember the batches they have."""

from __future__ import annotations

from pathlib import Path

from millstream.checkpoint import metadata
from millstream.checkpoint.metadata import QueryMetadata
from millstream.engine.sink_keys import sink_keys
from millstream.pipeline.model import Pipeline

ONE, OTHER = (
    {"postgres": {"url": f"postgresql://{host}/shop", "table": "orders"}} for host in ("one", "other")
)


def pipeline(folder: str, *sinks: dict[str, object]) -> Pipeline:
    spec = {
        "name": "shop",
        "sources": {"ticks": {"rate": {}}},
        "queries": {"ticks": {"to": list(sinks)}},
        "folder": Path(folder),
    }
    return Pipeline.model_validate(spec, context={"folder": folder})


def keys(folder: str, *sinks: dict[str, object]) -> list[str]:
    return sink_keys(pipeline(folder, *sinks), "ticks")


def started(folder: Path, named: list[str] | None, *sinks: dict[str, object]) -> None:
    """The record that a start over these sinks leaves; with the keys of an older version if given."""
    result = pipeline(str(folder), *sinks)
    entries = [entry.sink for entry in result.queries["ticks"].to]
    messages = [
        {"key": f"3f0c/{key}", **sink.identity()}
        for key, sink in zip(named or sink_keys(result, "ticks"), entries, strict=True)
    ]
    checkpoint = result.checkpoint("ticks").local
    assert checkpoint is not None
    metadata.write(checkpoint, QueryMetadata("ticks", "3f0c", (), (), tuple(messages), "append", {}, {}, {}))


def test_a_project_that_is_moved_keeps_its_names() -> None:
    assert (
        keys("/here/shop", {"delta": "lake/t"})
        == keys("/there/shop", {"delta": "lake/t"})
        == ["delta:lake/t"]
    )


def test_a_path_outside_the_project_is_told_whole() -> None:
    assert keys("/here/shop", {"delta": "/lake/t"}) == ["delta:/lake/t"]


def test_tables_of_one_name_in_two_databases_have_keys_whatever_their_order() -> None:
    item, other = keys("/shop", ONE, OTHER)

    assert (item, other) == ("postgres:orders@one:5432/shop", "postgres:orders@other:5432/shop")
    assert keys("/shop", OTHER, ONE) == [other, item]


def test_the_schema_public_is_the_same_table_and_the_same_sink() -> None:
    assert (
        keys("/shop", ONE)
        == keys("/shop", {"postgres": {**ONE["postgres"], "table": "public.orders"}})
        == ["postgres:orders"]
    )


def test_a_sink_keeps_its_key_when_another_one_of_its_name_is_added_or_removed(tmp_path: Path) -> None:
    started(tmp_path, None, ONE)

    assert keys(str(tmp_path), OTHER, ONE) == ["postgres:orders@other:5432/shop", "postgres:orders"]
    started(tmp_path, None, OTHER, ONE)

    assert keys(str(tmp_path), ONE) == ["postgres:orders"]
    assert keys(str(tmp_path), OTHER) == ["postgres:orders@other:5432/shop"]


def test_keys_that_an_older_version_numbered_stay_with_their_sinks(tmp_path: Path) -> None:
    started(tmp_path, ["postgres:orders", "postgres:orders#2"], ONE, OTHER)

    assert keys(str(tmp_path), ONE, OTHER) == ["postgres:orders", "postgres:orders#2"]
    assert keys(str(tmp_path), OTHER, ONE) == ["postgres:orders#2", "postgres:orders"]
    assert keys(str(tmp_path), OTHER) == ["postgres:orders#2"]


def test_a_key_that_an_older_version_made_with_the_schema_stays(tmp_path: Path) -> None:
    schema = {"postgres": {**ONE["postgres"], "table": "public.orders"}}
    started(tmp_path, ["postgres:public.orders"], schema)

    assert keys(str(tmp_path), schema) == keys(str(tmp_path), ONE) == ["postgres:public.orders"]


def test_a_database_that_moves_to_another_host_keeps_its_key(tmp_path: Path) -> None:
    started(tmp_path, None, ONE)

    assert keys(str(tmp_path), OTHER) == ["postgres:orders"]


def test_databases_of_one_host_are_told_apart_by_their_ports(tmp_path: Path) -> None:
    near, far = ({"postgres": {"url": f"postgresql://one:{port}/shop", "table": "orders"}} for port in (1, 2))
    started(tmp_path, None, near, far)

    assert keys(str(tmp_path), far, near) == ["postgres:orders@one:2/shop", "postgres:orders@one:1/shop"]


def test_brokers_in_another_order_are_the_same_cluster(tmp_path: Path) -> None:
    item, same, other = (
        {"kafka": {"bootstrap_servers": brokers, "topic": "t"}} for brokers in ("a:1,b:1", "b:1,a:1", "c:1")
    )
    started(tmp_path, None, item, other)

    assert keys(str(tmp_path), other, same) == ["kafka:t@c:1", "kafka:t@a:1,b:1"]


def test_sinks_that_nothing_tells_apart_are_numbered() -> None:
    assert keys("/shop", {"console": {}}, {"console": {}})[1].endswith("#2")
