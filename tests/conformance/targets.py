"""How each sink kind is given a place to write to, and how that place is read back without the writer."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from delta_tables import read_rows
from kind_examples import example_settings
from millstream.connectors import registry
from millstream.connectors.api.values.sandbox import Sandbox
from millstream.connectors.kafka.client.partition_ends import wait_for_commits
from millstream.devstack.servers import topics
from millstream.spec.location import Location
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest
    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.api.sink import Sink

Row = tuple[str | None, str | None]
"""Every test writes rows of two texts, `k` and `v`."""

_count = itertools.count()


@dataclass
class Place:
    """What a target may use: a folder of its own, Spark to read with, and servers once asked for."""

    folder: Path
    spark: SparkSession
    request: pytest.FixtureRequest
    name: str = field(default_factory=lambda: f"target_{next(_count)}")

    @property
    def stack(self) -> Any:
        return self.request.getfixturevalue("stack")


@dataclass(frozen=True)
class Target:
    """A sink, a way to read everything it holds, and the columns it takes for a row of `k` and `v`."""

    sink: Sink
    read: Callable[[], list[Row]]
    shape: Callable[[DataFrame], DataFrame] = lambda frame: frame


@dataclass(frozen=True)
class Case:
    """One kind in one output mode; `keyed` when rows of the same key replace each other."""

    kind: str
    mode: OutputMode
    keyed: bool = False

    def __str__(self) -> str:
        return f"{self.kind}-{self.mode}" + ("-keyed" if self.keyed else "")

    def target(self, place: Place) -> Target:
        return MAKERS.get(self.kind, _in_sandbox)(self, place)

    def holding(self, *batches: list[Row]) -> list[Row]:
        """What a sink must hold after these batches, each written once."""
        if self.mode is OutputMode.COMPLETE:
            return ordered(batches[-1])
        rows = [row for batch in batches for row in batch]
        return ordered(dict(rows).items()) if self.keyed else ordered(rows)


def ordered(rows: Any) -> list[Row]:
    return sorted((tuple(row) for row in rows), key=repr)


def _delta(case: Case, place: Place) -> Target:
    path = Location(place.folder / "table")
    sink = registry.sinks()["delta"](path=path, merge_on=("k",) if case.keyed else ())
    return Target(sink, lambda: ordered(read_rows(path, "k", "v")))


def _postgres(case: Case, place: Place) -> Target:
    import psycopg
    from psycopg.sql import SQL, Identifier

    from millstream.spec.secrets.secret import SecretUrl

    url = place.stack.postgres
    sink = registry.sinks()["postgres"](
        url=SecretUrl(url), table=place.name, merge_on=("k",) if case.keyed else ()
    )

    def read() -> list[Row]:
        with psycopg.connect(url) as connection:
            return ordered(
                connection.execute(SQL("SELECT k, v FROM {}").format(Identifier(place.name))).fetchall()
            )

    return Target(sink, read)


def _kafka(case: Case, place: Place) -> Target:  # noqa: ARG001 - the same in every mode
    from confluent_kafka import Consumer, TopicPartition

    servers = place.stack.kafka
    topics.create_topics(servers, {place.name: {"partitions": "2"}})
    sink = registry.sinks()["kafka"](bootstrap_servers=[servers], topic=place.name, key=("k",))

    def read() -> list[Row]:
        wait_for_commits({"bootstrap.servers": servers}, place.name)
        settings = {"bootstrap.servers": servers, "group.id": place.name, "isolation.level": "read_committed"}
        consumer = Consumer({**settings, "enable.partition.eof": True})
        rows: list[Row] = []
        try:
            for number in (0, 1):
                consumer.assign([TopicPartition(place.name, number, 0)])
                # The end of a transaction takes an offset too: counting offsets would wait for no record.
                while (message := consumer.poll(60)) is not None and message.error() is None:
                    value = json.loads(message.value())
                    rows.append((value.get("k"), value.get("v")))
                assert message is not None, "the broker gave no record within a minute"
                assert message.error().name() == "_PARTITION_EOF", message.error()
        finally:
            consumer.close()
        return ordered(rows)

    return Target(sink, read)


def _files(case: Case, place: Place) -> Target:
    path = Location(place.folder / "files")
    sink = registry.sinks()[case.kind](
        path=path, layout="by_batch" if case.mode is OutputMode.UPDATE else "moved"
    )
    options = {"multiLine": "true"} if case.kind == "csv" else {}

    def read() -> list[Row]:
        if not list((place.folder / "files").rglob(f"*.{case.kind}*")):
            return []
        reader = place.spark.read.format(case.kind).options(recursiveFileLookup="true", **options)
        return ordered(reader.schema("k STRING, v STRING").load(path).collect())

    return Target(sink, read)


def _text(case: Case, place: Place) -> Target:
    """A text file has one column: a row travels in it as JSON."""
    target = _files(case, place)

    def read() -> list[Row]:
        files = [file for file in (place.folder / "files").rglob("*.txt") if file.is_file()]
        lines = [json.loads(line) for file in files for line in file.read_text().split("\n") if line]
        return ordered((line.get("k"), line.get("v")) for line in lines)

    return Target(target.sink, read, lambda frame: frame.selectExpr("to_json(struct(k, v)) AS value"))


def _memory(case: Case, place: Place) -> Target:  # noqa: ARG001 - the same in every mode
    from millstream.connectors.memory.tables import read_table

    def read() -> list[Row]:
        return ordered((row["k"], row["v"]) for row in read_table(place.name).to_pylist())

    return Target(registry.sinks()["memory"](table=place.name), read)


def _foreach_batch(case: Case, place: Place) -> Target:
    """A function that keeps each batch of each query in a folder of its own, the first time it comes."""
    order: list[str] = []

    def store(frame: DataFrame, batch: Any) -> None:
        home = str(place.folder / f"{batch.query_id}-{batch}")
        if home not in order:
            frame.write.json(home)
            order.append(home)

    def read() -> list[Row]:
        remaining = order[-1:] if case.mode is OutputMode.COMPLETE else order
        return (
            ordered(place.spark.read.schema("k STRING, v STRING").json(remaining).collect())
            if remaining
            else []
        )

    sink = registry.sinks()["foreach_batch"](function="deliveries:store")
    return Target(sink.bound({"function": store}), read)


def _foreach(case: Case, place: Place) -> Target:  # noqa: ARG001 - the same in every mode
    """A class that keeps each row in a file of its own."""
    folder = str(place.folder)

    class Keep:
        def process(self, row: Any) -> None:
            import json
            import uuid
            from pathlib import Path

            Path(folder, f"{uuid.uuid4()}.row").write_text(json.dumps([row.k, row.v]))

    def read() -> list[Row]:
        return ordered(json.loads(file.read_text()) for file in place.folder.glob("*.row"))

    sink = registry.sinks()["foreach"](function="deliveries:Keep")
    return Target(sink.bound({"function": Keep}), read)


def _in_sandbox(case: Case, place: Place) -> Target:
    """A kind without a function here: its fields' examples as settings, in a sandbox, read by the kind itself."""
    sink = sandboxed(case.kind, place.folder, **({"merge_on": ["k"]} if case.keyed else {}))
    schema = place.spark.createDataFrame([], "k STRING, v STRING").schema

    def read() -> list[Row]:
        rows = sink.read_all(place.spark, schema, case.mode)
        assert rows is not None, f"{case.kind} needs a function here, or the hook that reads its rows"
        return ordered(rows.collect())

    return Target(sink, read)


def sandboxed(kind: str, folder: Path, **settings: object) -> Sink:
    """A sink of that kind in a sandbox below a folder, with the examples of its fields as required settings."""
    made = registry.sinks()[kind].model_validate(example_settings(registry.sinks()[kind]) | settings)
    sink = made.in_sandbox(Sandbox(folder, "sandbox"))
    assert sink is not None, f"{kind} needs a function here, or the hooks of a sandbox"
    sink.prepare()
    return sink


MAKERS: dict[str, Callable[[Case, Place], Target]] = {
    "csv": _files,
    "delta": _delta,
    "foreach": _foreach,
    "foreach_batch": _foreach_batch,
    "json": _files,
    "kafka": _kafka,
    "memory": _memory,
    "orc": _files,
    "parquet": _files,
    "postgres": _postgres,
    "text": _text,
}
UNREADABLE = {"console": "standard output cannot be read back"}

ROW_BY_ROW = frozenset({"foreach"})
"""Kinds that hand over rows without saying whose they are: what a result replaces is the function's affair."""

KEYED = frozenset(kind for kind, sink in registry.sinks().items() if "merge_on" in sink.model_fields)
"""Kinds that replace rows by key, when they are told the key."""

DELETING = frozenset(kind for kind in KEYED if "delete_when" in registry.sinks()[kind].model_fields)
"""Kinds that delete rows by key, by a condition or as changes."""

IN_SANDBOX = frozenset(registry.sinks()) - set(MAKERS) - set(UNREADABLE)
"""Kinds that are tried by their own hooks alone."""


def family(case: Case) -> list[tuple[object, ...]]:
    """The writer that a case shares with other kinds, its mode, and whether rows have a key."""
    shared = MAKERS[case.kind].__name__ if case.kind in MAKERS else case.kind
    return [(shared, case.mode, case.keyed)]


def writers(case: Case) -> list[object]:
    """The writer that a case shares with other kinds, whether rows have a key, and each mode."""
    (shared, mode, keyed), *_ = family(case)
    return [(shared, keyed), mode]


def kinds(case: Case) -> list[object]:
    """Each kind, with a key and without, and each mode."""
    return [(case.kind, case.keyed), case.mode]


def cases() -> list[Case]:
    """Every kind of the registry in every mode it takes; append twice for kinds that may be told a key."""
    actual = []
    for kind, sink in registry.sinks().items():
        if kind in UNREADABLE:
            continue
        for mode in sorted(sink.modes):
            if kind in ROW_BY_ROW and mode is OutputMode.COMPLETE:
                continue
            needs_key = kind in KEYED and mode is OutputMode.UPDATE
            actual.append(Case(kind, mode, keyed=needs_key))
            if kind in KEYED and mode is OutputMode.APPEND:
                actual.append(Case(kind, mode, keyed=True))
    return actual
