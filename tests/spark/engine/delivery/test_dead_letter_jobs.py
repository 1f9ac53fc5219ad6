"""A few dead letters of a batch reach their store without a Spark job and without a second read of the batch."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from millstream.connectors import registry
from millstream.connectors.api.dead_letters import read_unique
from millstream.connectors.delta.writer import DeltaWriter
from millstream.diagnostics.failure import Outage
from millstream.engine.delivery import spooling_writer
from millstream.engine.delivery.batch_spool import list_spooled_batches
from millstream.engine.delivery.spool_replay import replay

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.connectors.api.dead_letters import DeadLetter
    from millstream.connectors.api.writer import WriteResult
    from millstream.devstack.supervisor.state import Endpoints
    from millstream.pipeline.model import Pipeline
    from spark.conftest import Project

pytestmark = pytest.mark.usefixtures("interpreted")

GOOD = {"id": "a", "amount": 3, "at": "2026-01-01T12:01:00Z"}
NEGATIVE = {"id": "b", "amount": -4, "at": "2026-01-01T12:02:00Z"}
LOWER = {"id": "d", "amount": -5, "at": "2026-01-01T12:04:00Z"}
LARGE = {"id": "c", "amount": 900, "at": "2026-01-01T12:03:00Z"}
MALFORMED = "{broken"
REASONS = {
    "malformed": "the record does not fit the schema",
    "source": "expected amount > 0",
    "view": "expected amount < 100",
}
LINES = {"malformed": MALFORMED, "source": NEGATIVE, "view": LARGE}


@pytest.fixture
def stores(request: pytest.FixtureRequest, project: Project) -> Callable[[str], dict[str, Any]]:
    """Returns the spec of a fresh store of a kind."""

    def spec(kind: str) -> dict[str, Any]:
        name = f"letters_{uuid.uuid4().hex[:8]}"
        if kind == "delta":
            return {"delta": str(project.folder / name)}
        stack: Endpoints = request.getfixturevalue("stack")
        if kind == "postgres":
            return {"postgres": {"url": stack.postgres, "table": name, "ledger_schema": name}}
        topic = {"topic": name, "ledger_topic": f"{name}-ledger"}
        return {"kafka": {"bootstrap_servers": stack.kafka, **topic}}

    return spec


def checked(project: Project, store: dict[str, Any], **changes: Any) -> Pipeline:
    """Orders and a view, each with an expectation, into Parquet."""
    orders = {
        "json": {"path": str(project.folder / "in"), "max_files_per_trigger": 1},
        "schema": {"id": "string", "amount": "int", "at": "timestamp"},
        "on_malformed": "dead_letter",
        "expect": {"positive": {"that": "amount > 0", "otherwise": "dead_letter"}},
    }
    small = {
        "sql": "SELECT id, amount FROM orders",
        "expect": {"small": {"that": "amount < 100", "otherwise": "dead_letter"}},
    }
    copy = {"from": "small", "to": {"parquet": str(project.folder / "files")}}
    spec = {"sources": {"orders": orders}, "views": {"small": small}, "queries": {"copy": copy}}
    return project.pipeline(**{**spec, "dead_letters": store, **changes})


def jobs_of_run(project: Project, pipeline: Pipeline) -> int:
    """Number of Spark jobs that a run over what was added takes."""
    scheduler = project.spark.sparkContext._jsc.sc().dagScheduler()  # type: ignore[attr-defined]
    before = scheduler.numTotalJobs()
    assert project.run(pipeline)
    return int(scheduler.numTotalJobs()) - int(before)


def read_reasons(pipeline: Pipeline) -> list[str]:
    return sorted(letter.reason for letter in read_unique(pipeline.letters))


@pytest.mark.parametrize(
    ("kind", "places"),
    [
        *((kind, ("malformed", "source", "view")) for kind in registry.dead_letter_stores()),
        # If one place takes a job more, so do all three.
        *(pytest.param("delta", (place,), marks=pytest.mark.whole) for place in REASONS),
    ],
)
def test_a_batch_with_a_few_dead_letters_takes_the_jobs_of_one_without(
    kind: str, places: tuple[str, ...], project: Project, stores: Callable[[str], dict[str, Any]]
) -> None:
    pipeline = checked(project, stores(kind))
    jobs = []
    for lines in ([GOOD], [GOOD], [GOOD, *(LINES[place] for place in places)]):
        project.add_lines(*lines)
        jobs.append(jobs_of_run(project, pipeline))

    assert jobs[2] == jobs[1] > 0
    assert read_reasons(pipeline) == sorted(REASONS[place] for place in places)
    assert len(project.rows("files", "parquet")) == 3


# Of the malformed records, or of those that break an expectation, there are more than are handed over.
@pytest.mark.parametrize(
    ("kind", "more", "value"),
    [
        *((kind, '"no object"', b'"no object"') for kind in registry.dead_letter_stores()),
        ("delta", LOWER, b'{"id":"d","amount":-5,"at":"2026-01-01T12:04:00.000000Z"}'),
    ],
    ids=[*registry.dead_letter_stores(), "delta, by expectation"],
)
def test_dead_letters_that_were_handed_over_and_that_were_read_again_are_one_commit(
    kind: str,
    more: object,
    value: bytes,
    project: Project,
    stores: Callable[[str], dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("millstream.engine.delivery.dead_letters.MOST_HANDED_OVER", 1)
    pipeline = checked(project, stores(kind))
    project.add_lines(GOOD, MALFORMED, more, NEGATIVE, LARGE)
    project.run(pipeline)
    before = read_unique(pipeline.letters)

    project.forget_last_commit("copy")
    project.run(pipeline)

    assert sorted(letter.value or b"" for letter in before) == sorted(
        [
            b'{"id":"b","amount":-4,"at":"2026-01-01T12:02:00.000000Z"}',
            b'{"id":"c","amount":900}',
            b"{broken",
            value,
        ]
    )
    assert read_unique(pipeline.letters) == before


@pytest.mark.parametrize(
    ("most", "most_text"), [(100, 10_000), (0, 10_000), (100, 50)], ids=["handed over", "read again", "cut"]
)
def test_a_dead_letter_is_the_same_whether_it_was_handed_over_or_read_again(
    most: int,
    most_text: int,
    project: Project,
    stores: Callable[[str], dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("millstream.engine.delivery.dead_letters.MOST_HANDED_OVER", most)
    for module in ("engine.delivery.dead_letters", "frames.dead_letter_columns"):
        monkeypatch.setattr(f"millstream.{module}.MOST_HANDED_OVER_TEXT", most_text)
    pipeline = checked(project, stores("delta"))
    project.add_lines(GOOD, MALFORMED, {**NEGATIVE, "id": 'b "\\ \x01 żółw \U0001f40b'})

    project.run(pipeline)

    path = f"file:{project.folder}/in/001.json"
    letters = sorted(read_unique(pipeline.letters), key=lambda letter: letter.reason)
    assert [_without_time(letter) for letter in letters] == [
        (
            "copy",
            "orders",
            path,
            '{"id":"b \\"\\\\ \\u0001 żółw 🐋",' + _REST,
            "expected amount > 0",
            "positive",
        ),
        ("copy", "orders", path, "{broken", "the record does not fit the schema", None),
    ]


_REST = '"amount":-4,"at":"2026-01-01T12:02:00.000000Z"}'


def _without_time(letter: DeadLetter) -> tuple[Any, ...]:
    """A dead letter without what it has none of and without the time at which it was stored."""
    assert (letter.topic, letter.partition, letter.offset, letter.timestamp) == (None, None, None, None)
    assert (letter.key, letter.headers, letter.batch_id) == (None, None, 0)
    value = (letter.value or b"").decode()
    return letter.query, letter.source, letter.file, value, letter.reason, letter.expectation


def test_a_batch_that_waits_for_its_sink_has_its_dead_letters_once(
    project: Project, stores: Callable[[str], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spooling_writer, "PATIENCE", 0.0)
    sink = {"delta": str(project.folder / "table"), "on_error": "dead_letter"}
    pipeline = checked(project, stores("delta"), queries={"copy": {"from": "small", "to": sink}})
    project.add_lines(GOOD, MALFORMED, NEGATIVE, LARGE)

    def away(*_: object) -> WriteResult:
        raise Outage("the table is away", "start it")

    with monkeypatch.context() as patch:
        patch.setattr(DeltaWriter, "write", away)
        project.run(pipeline)
        project.forget_last_commit("copy")
        project.run(pipeline)
        waiting = [batch.batch for batch in list_spooled_batches(pipeline, ["copy"])]
    replay(project.spark, pipeline, ["copy"], None, lambda *_: None)

    assert waiting == [0]
    assert project.rows("table") == [("a", 3)]
    assert read_reasons(pipeline) == sorted(REASONS.values())
