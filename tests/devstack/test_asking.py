"""What `check --connect` finds out by asking: a real broker, a real database, a real lake."""

from __future__ import annotations

import json
import socket
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
import yaml
from confluent_kafka import Producer, TopicPartition
from confluent_kafka import admin as kafka
from psycopg.sql import SQL, Identifier

from millstream.analysis.query.plan_model import Column, Operator, PlannedQuery
from millstream.checking import connectivity as checking_connectivity
from millstream.checking.check import CheckResult, check
from millstream.checkpoint import metadata
from millstream.connectors import registry
from millstream.connectors.kafka import connectivity as kafka_connectivity
from millstream.pipeline.spec_file import load_text
from millstream.spec.output_mode import OutputMode
from millstream.spec.trigger import Trigger

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.devstack.supervisor.state import Endpoints

AdminClient: Any = kafka.AdminClient
NewTopic: Any = kafka.NewTopic

COLUMNS = {"id": "string", "n": "bigint"}


@dataclass
class World:
    """A broker and a database, names that no other test knows, and a folder."""

    stack: Endpoints
    folder: Path
    name: str
    admin: Any

    def topic(self, partitions: int = 1, **settings: str) -> str:
        config = {key.replace("_", "."): value for key, value in settings.items()}
        self.admin.create_topics([NewTopic(self.name, partitions, 1, config=config)])[self.name].result(60)
        return self.name

    def drop(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(60)

    def send(self, topic: str, records: int) -> None:
        producer = Producer({"bootstrap.servers": self.stack.kafka})
        for number in range(records):
            producer.produce(topic, str(number).encode(), partition=0)
        assert producer.flush(60) == 0

    def id_of(self, topic: str) -> str:
        kind = registry.sources()["kafka"]
        return kind(bootstrap_servers=(self.stack.kafka,), subscribe=(topic,)).probe()[f"topic.{topic}"]

    def sql(self, text: str) -> None:
        # The stack's role has the name of the ledger's schema, which comes before public once a run has made it.
        public = "-c search_path=public"
        with psycopg.connect(self.stack.postgres, autocommit=True, options=public) as connection:
            connection.execute(SQL(text).format(name=Identifier(self.name)))

    def source(self, **settings: Any) -> dict[str, Any]:
        return {"kafka": {"bootstrap_servers": self.stack.kafka, **settings}, "schema": {"id": "string"}}

    def postgres(self, **settings: Any) -> dict[str, Any]:
        return {"postgres": {"url": self.stack.postgres, "table": self.name, **settings}}

    def record_start(self, query: str, told: dict[str, str], offsets: dict[str, dict[str, int]]) -> None:
        """A checkpoint of a query that has read so far."""
        folder = self.folder / ".millstream" / "checkpoints" / query
        (folder / "offsets").mkdir(parents=True)
        (folder / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))
        (folder / "offsets" / "0").write_text(f"v1\n{{}}\n{json.dumps(offsets)}")
        query_metadata = metadata.QueryMetadata(query, "id", (), (told,), (), "append", {}, {}, {})
        metadata.write(folder, query_metadata)

    def ask(
        self,
        source: dict[str, Any],
        sink: dict[str, Any] | None = None,
        columns: dict[str, str] | None = None,
    ) -> list[tuple[str, str]]:
        """Code and message of what is found about one source and one sink."""
        spec = {
            "name": "shop",
            "sources": {"rows": source},
            "queries": {"rows": {"output_mode": "append", "to": sink or {"console": {}}}},
        }
        loaded = load_text("pipeline.yml", yaml.safe_dump(spec), self.folder, {})
        assert loaded.pipeline is not None, loaded.findings
        value = tuple(Column(name, kind) for name, kind in (columns or COLUMNS).items())
        planned = PlannedQuery(
            "rows", Operator(0, "Project", "", columns=value), OutputMode.APPEND, Trigger()
        )
        findings = checking_connectivity.check_connectivity(loaded, (planned,)).findings
        assert all(finding.span is not None for finding in findings)
        return [(finding.code, finding.message) for finding in findings]


@pytest.fixture
def world(stack: Endpoints, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    # Longer than a user would wait.
    monkeypatch.setattr(checking_connectivity, "PATIENCE", 60.0)
    admin = AdminClient({"bootstrap.servers": stack.kafka, "log_level": 0})
    return World(stack, tmp_path, f"asked_{uuid.uuid4().hex[:8]}", admin)


RATE: dict[str, Any] = {"rate": 1}


def codes(found: list[tuple[str, str]]) -> list[str]:
    return [code for code, _ in found]


def test_a_topic_and_a_table_as_they_should_be_give_nothing(world: World) -> None:
    world.sql("CREATE TABLE {name} (id text PRIMARY KEY, n bigint)")

    assert world.ask(world.source(subscribe=world.topic()), world.postgres(merge_on=["id"])) == []


def test_a_topic_that_is_not_there_is_named(world: World) -> None:
    assert world.ask(world.source(subscribe="nowhere"))[0][0] == "MS561"


def test_a_compacted_topic_is_told(world: World) -> None:
    actual = world.ask(world.source(subscribe=world.topic(cleanup_policy="compact")))

    assert codes(actual) == ["MS562"]


def test_a_compacted_topic_that_is_read_as_a_table_is_right(world: World) -> None:
    source = {**world.source(subscribe=world.topic(cleanup_policy="compact")), "static": True}
    spec = {
        "name": "shop",
        "sources": {"names": source, "rows": RATE},
        "views": {"named": "SELECT rows.* FROM rows JOIN names ON true"},
        "queries": {"named": {"to": {"console": {}}}},
    }
    loaded = load_text("pipeline.yml", yaml.safe_dump(spec), world.folder, {})

    assert checking_connectivity.check_connectivity(loaded).findings == []


def test_the_time_that_an_outage_may_last_is_told(world: World) -> None:
    actual = world.ask(world.source(subscribe=world.topic(retention_ms="21600000")))

    assert codes(actual) == ["MS563"]
    assert "keeps records for 6 hours" in actual[0][1]


def test_a_topic_that_was_made_anew_is_told(world: World) -> None:
    topic = world.topic()
    world.record_start("rows", {"name": "rows", f"topic.{topic}": "another-id"}, {topic: {"0": 0}})

    assert codes(world.ask(world.source(subscribe=topic))) == ["MS564"]


def test_the_topic_that_a_checkpoint_began_with_gives_nothing(world: World) -> None:
    topic = world.topic()
    world.record_start("rows", {"name": "rows", f"topic.{topic}": world.id_of(topic)}, {topic: {"0": 0}})

    assert world.ask(world.source(subscribe=topic)) == []


def test_a_checkpoint_beyond_the_end_of_its_topic_is_told(world: World) -> None:
    topic = world.topic()
    world.record_start("rows", {"name": "rows"}, {topic: {"0": 40}})

    actual = world.ask(world.source(subscribe=topic))

    assert codes(actual) == ["MS566"]
    assert "resumes at offset 40 of partition 0" in actual[0][1]


def test_records_that_are_gone_before_a_query_read_them_are_counted(world: World) -> None:
    topic = world.topic()
    world.send(topic, 10)
    for response in world.admin.delete_records([TopicPartition(topic, 0, 7)]).values():
        response.result(60)
    world.record_start("rows", {"name": "rows"}, {topic: {"0": 2}})

    actual = world.ask(world.source(subscribe=topic))

    assert actual == [
        (
            "MS566",
            f"query 'rows' resumes at offset 2 of partition 0 of topic '{topic}', "
            "but the oldest record is 7: 5 are gone",
        )
    ]


def test_a_starting_offset_that_no_record_has_is_told(world: World) -> None:
    topic = world.topic()

    assert codes(world.ask(world.source(subscribe=topic, starting_offsets={topic: {"0": 12}}))) == ["MS566"]


def test_a_first_batch_of_a_large_topic_is_counted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = world.topic()
    world.send(topic, 30)
    monkeypatch.setattr(kafka_connectivity, "MOST_RECORDS", 20)

    actual = world.ask(world.source(subscribe=topic))

    assert actual == [("MS565", "the first batch of query 'rows' would contain 30 records")]


def test_a_limit_of_a_batch_makes_a_large_topic_right(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = world.topic()
    world.send(topic, 30)
    monkeypatch.setattr(kafka_connectivity, "MOST_RECORDS", 20)

    assert world.ask(world.source(subscribe=topic, max_offsets_per_trigger=10)) == []


def test_records_without_a_key_into_a_compacted_topic_are_refused(world: World) -> None:
    sink = {"kafka": {"bootstrap_servers": world.stack.kafka, "topic": world.topic(cleanup_policy="compact")}}

    assert codes(world.ask(RATE, sink)) == ["MS573"]


def test_a_topic_that_takes_smaller_records_than_are_sent_is_told(world: World) -> None:
    topic = world.topic(max_message_bytes="1000000")
    options = {"kafka.max.request.size": 8000000}
    sink = {"kafka": {"bootstrap_servers": world.stack.kafka, "topic": topic, "options": options}}

    assert codes(world.ask(RATE, sink)) == ["MS572"]


def test_a_broker_that_is_away_is_told_once_for_all_that_need_it(world: World) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        servers = f"127.0.0.1:{free.getsockname()[1]}"
    source = {"kafka": {"bootstrap_servers": servers, "subscribe": "a"}, "schema": {"id": "string"}}

    actual = world.ask(source, {"kafka": {"bootstrap_servers": servers, "topic": "b"}})

    assert actual == [("MS560", f"no Kafka broker responds at {servers}")]


def test_a_server_that_takes_the_call_and_says_nothing_is_given_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking_connectivity, "PATIENCE", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"postgresql://someone@127.0.0.1:{mute.getsockname()[1]}/shop"
        actual = world.ask(RATE, {"postgres": {"url": url, "table": "t"}})

    assert actual == [("MS560", "sink postgres t of query 'rows' does not answer within 0.3 seconds")]


def test_a_database_that_is_not_there_is_out_of_reach(world: World) -> None:
    sink = {"postgres": {"url": f"{world.stack.postgres}_none", "table": "t"}}

    assert codes(world.ask(RATE, sink)) == ["MS560"]


def test_a_missing_unique_index_is_told(world: World) -> None:
    world.sql("CREATE TABLE {name} (id text, n bigint)")

    actual = world.ask(RATE, world.postgres(merge_on=["id"]))

    assert actual == [("MS569", f"table {world.name} has no unique index on (id), which merge_on needs")]


def test_a_table_that_is_not_to_be_made_must_be_there(world: World) -> None:
    assert codes(world.ask(RATE, world.postgres(create=False))) == ["MS561"]


def test_a_missing_column_is_told(world: World) -> None:
    world.sql("CREATE TABLE {name} (id text)")

    assert world.ask(RATE, world.postgres()) == [("MS568", f"table {world.name} has no column 'n'")]


def test_a_column_of_another_type_is_told(world: World) -> None:
    world.sql("CREATE TABLE {name} (id text, n boolean)")

    assert world.ask(RATE, world.postgres()) == [
        ("MS568", f"column 'n' of table {world.name} is boolean, but the query's column is bigint")
    ]


def test_missing_rights_are_told(world: World) -> None:
    world.sql("CREATE TABLE {name} (id text, n bigint)")
    world.sql("CREATE ROLE {name} LOGIN PASSWORD 'word'")
    after = world.stack.postgres.rpartition("@")[2]

    actual = world.ask(
        RATE, world.postgres(url=f"postgresql://{world.name}:word@{after}", ledger_schema=world.name)
    )

    assert ("MS567", f"role '{world.name}' is not permitted to insert into table {world.name}") in actual


def test_a_sink_that_deletes_rows_needs_the_right_to_delete(world: World) -> None:
    world.sql("CREATE TABLE {name} (id text PRIMARY KEY, n bigint)")
    world.sql("CREATE ROLE {name} LOGIN PASSWORD 'word'")
    world.sql("GRANT SELECT, INSERT, UPDATE ON {name} TO {name}")
    url = f"postgresql://{world.name}:word@{world.stack.postgres.rpartition('@')[2]}"
    sink = world.postgres(url=url, ledger_schema=world.name, merge_on=["id"], delete_when="n < 0")
    refusal = ("MS567", f"role '{world.name}' is not permitted to delete from table {world.name}")

    assert refusal in world.ask(RATE, sink)
    world.sql("GRANT DELETE ON {name} TO {name}")
    assert refusal not in world.ask(RATE, sink)


def test_several_things_that_a_database_refuses_are_told_at_once(world: World) -> None:
    world.sql("CREATE TABLE {name} (id integer, n integer)")

    actual = world.ask(RATE, world.postgres(merge_on=["id"]))

    assert sorted(codes(actual)) == ["MS568", "MS568", "MS569"]


def test_a_folder_of_sparks_own_sink_is_told(world: World) -> None:
    (world.folder / "lake" / "_spark_metadata").mkdir(parents=True)

    assert codes(world.ask(RATE, {"parquet": "lake"})) == ["MS570"]


def test_a_checkpoint_that_began_with_another_source_is_told(world: World) -> None:
    world.record_start("rows", {"name": "clicks"}, {"clicks": {"0": 1}})

    assert world.ask(RATE) == [
        (
            "MS571",
            "the checkpoint of query 'rows' was created with other sources: "
            "it no longer reads 'clicks' and also reads 'rows'",
        )
    ]


def checked(world: World, spec: dict[str, Any]) -> CheckResult:
    text = yaml.safe_dump(spec, sort_keys=False)
    return check(load_text("pipeline.yml", text, world.folder, {}), connect=True)


def compacted(world: World, **more: Any) -> dict[str, Any]:
    return {
        "name": "shop",
        "sources": {"rows": world.source(subscribe=world.topic(cleanup_policy="compact"))},
        "queries": {"rows": {"to": {"console": {}}}},
        **more,
    }


def test_what_a_server_shows_may_be_given_another_severity(world: World) -> None:
    findings = checked(world, compacted(world, rules={"MS562": "error"})).findings

    assert [(finding.code, finding.severity.value) for finding in findings] == [("MS562", "error")]


def test_a_comment_may_allow_what_a_server_shows(world: World) -> None:
    text = yaml.safe_dump(compacted(world), sort_keys=False)
    text = "".join(
        f"{line}  # millstream: allow MS562 — only the latest price counts\n"
        if "subscribe" in line
        else f"{line}\n"
        for line in text.splitlines()
    )
    loaded = load_text("pipeline.yml", text, world.folder, {})

    assert check(loaded, connect=True).findings == []
    assert check(loaded).findings == [], "it is not idle where nobody was asked"


def test_a_check_that_found_nobody_to_ask_says_so(world: World) -> None:
    sink = {"postgres": {"url": "postgresql://someone@127.0.0.1:1/shop", "table": "t"}}
    actual = checked(world, {"name": "shop", "sources": {"rows": RATE}, "queries": {"rows": {"to": sink}}})

    assert actual.is_unanswered
