"""A spec with everything in it means the same in YAML, in Python, and as `config` prints it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest
import yaml

import millstream as ms
from millstream.cli.explain.config import _yaml
from millstream.diagnostics.failure import InvalidInput
from millstream.pipeline.export.dump import resolve_spec
from millstream.pipeline.export.json_schema import json_schema
from millstream.pipeline.spec_file import load_spec, load_text

if TYPE_CHECKING:
    from millstream.pipeline.model import Pipeline

SPEC = """
name: everything
defaults:
  trigger: 10 seconds
  checkpoints: state
  retry: {first: 2 seconds, most: 1 minute}
params: {least: 10, country: "no"}
spark: {spark.sql.shuffle.partitions: 4, spark.sql.ansi.enabled: true}
dead_letters: letters
sources:
  clicks:
    kafka: {bootstrap_servers: "localhost:9092", subscribe: clicks, max_offsets_per_trigger: "${MOST:-500}"}
    format: json
    schema: {event_id: string, user_id: string, event_time: timestamp}
    options: {timestampFormat: "yyyy"}
    keep: [partition, offset]
    watermark: {event_time: event_time, delay_threshold: 5 minutes}
    drop_duplicates_within_watermark: [event_id]
    on_malformed: dead_letter
  catalog: {parquet: data/catalog, static: true}
  ticks: {rate: {rows_per_second: 5}}
views:
  visits: |
    SELECT user_id, count(*) AS n
    FROM clicks GROUP BY user_id
  joined: {sql: SELECT * FROM visits}
  sessions: {python: "transforms:sessions"}
  kept: {file: sql/kept.sql}
queries:
  visits:
    output_mode: update
    trigger: available_now
    to:
      delta: {path: lake/visits, merge_on: [user_id]}
  raw:
    from: clicks
    output_mode: append
    trigger: {continuous: 1 second}
    checkpoint: elsewhere/raw
    to:
      - parquet: {path: lake/raw, partition_by: [event_id]}
      - postgres: {table: raw, url: "postgresql://u:S3CR3T-canary@localhost/db", merge_on: [event_id]}
        on_error: fail
      - console:
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql" / "kept.sql").write_text("SELECT 1\n")
    return tmp_path


def in_yaml(folder: Path, text: str = SPEC) -> Pipeline:
    loaded = load_text("pipeline.yml", text, folder, {})
    assert loaded.findings == []
    assert loaded.pipeline is not None
    return loaded.pipeline.model_copy(update={"file": None})


def in_python(folder: Path) -> Pipeline:
    shop = ms.declare(
        "everything",
        folder=folder,
        defaults={
            "trigger": "10 seconds",
            "checkpoints": "state",
            "retry": {"first": "2 seconds", "most": "1 minute"},
        },
        params={"least": 10, "country": "no"},
        spark={"spark.sql.shuffle.partitions": 4, "spark.sql.ansi.enabled": True},
        dead_letters="letters",
    )
    shop.source(
        "clicks",
        ms.kafka(bootstrap_servers="localhost:9092", subscribe="clicks", max_offsets_per_trigger=500),
        format="json",
        schema={"event_id": "string", "user_id": "string", "event_time": "timestamp"},
        options={"timestampFormat": "yyyy"},
        keep=["partition", "offset"],
        watermark=("event_time", "5 minutes"),
        drop_duplicates_within_watermark=["event_id"],
        on_malformed="dead_letter",
    )
    shop.source("catalog", ms.parquet("data/catalog"), static=True)
    shop.source("ticks", ms.rate(rows_per_second=5))
    shop.view("visits", "SELECT user_id, count(*) AS n\nFROM clicks GROUP BY user_id\n")
    shop.view("joined", "SELECT * FROM visits")
    shop.view("sessions", python="transforms:sessions")
    shop.view("kept", file="sql/kept.sql")
    shop.query(
        "visits",
        output_mode="update",
        trigger="available_now",
        to=ms.delta(path="lake/visits", merge_on=["user_id"]),
    )
    shop.query(
        "raw",
        from_="clicks",
        trigger={"continuous": "1 second"},
        checkpoint="elsewhere/raw",
        to=[
            ms.parquet(path="lake/raw", partition_by=["event_id"]),
            ms.sink(
                ms.postgres(
                    table="raw", url="postgresql://u:S3CR3T-canary@localhost/db", merge_on=["event_id"]
                ),
                on_error="fail",
            ),
            ms.console(),
        ],
    )
    return shop.build()


def test_yaml_and_python_build_the_same_model(folder: Path) -> None:
    assert in_python(folder) == in_yaml(folder)


def test_what_config_prints_means_the_same(folder: Path) -> None:
    before = in_yaml(folder)

    text = _yaml(resolve_spec(before)).replace("***", "S3CR3T-canary")
    after = in_yaml(folder, text)

    assert resolve_spec(after) == resolve_spec(before)
    assert after.sources == before.sources
    assert {name: query.to for name, query in after.queries.items()} == {
        name: query.to for name, query in before.queries.items()
    }


def test_config_keeps_secrets_hidden(folder: Path) -> None:
    assert "S3CR3T-canary" not in json.dumps(resolve_spec(in_yaml(folder)))


def test_the_schema_accepts_what_the_loader_accepts(folder: Path) -> None:
    validator = jsonschema.Draft202012Validator(json_schema())

    assert [error.message for error in validator.iter_errors(yaml.safe_load(SPEC))] == []
    assert list(validator.iter_errors(json.loads(json.dumps(resolve_spec(in_yaml(folder)))))) == []


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize(
    ("place", "key"),
    [
        ((), "nam"),
        (("defaults",), "triger"),
        (("sources", "clicks"), "kafak"),
        (("sources", "clicks", "kafka"), "subscrib"),
        (("sources", "clicks", "watermark"), "delay"),
        (("queries", "visits"), "too"),
        (("queries", "visits", "to", "delta"), "pth"),
        (("views", "joined"), "sq"),
    ],
)
def test_the_schema_refuses_an_unknown_key(place: tuple[str, ...], key: str) -> None:
    data = yaml.safe_load(SPEC)
    here = data
    for step in place:
        here = here[step]
    here[key] = {}

    assert not jsonschema.Draft202012Validator(json_schema()).is_valid(data)


def test_the_schema_describes_every_setting() -> None:
    schema = json_schema()

    bare = [
        f"{name}.{key}"
        for name, model in {"Pipeline": schema, **schema["$defs"]}.items()
        for form in (model, *model.get("anyOf", ()))
        for key, setting in form.get("properties", {}).items()
        if not (setting.get("description") or schema["$defs"][setting["$ref"].split("/")[-1]]["description"])
    ]
    assert bare == []


def test_python_tells_all_that_is_wrong() -> None:
    shop = ms.declare("shop")
    shop.source("clicks", ms.kafka(subscrib="clicks"), schema={"a": "string"})
    shop.query("clicks", to=ms.delta(path="x"), output_mode="upsert")

    with pytest.raises(InvalidInput) as failed:
        shop.build()

    assert "has no key 'subscrib'" in failed.value.what
    assert "takes append, update or complete" in failed.value.what


def test_a_decorated_function_is_a_view() -> None:
    shop = ms.declare("shop")
    shop.source("clicks", ms.rate())

    @shop.view
    def sessions(clicks: object) -> object:
        return clicks

    shop.query("sessions", to=ms.console())

    assert shop.build().views["sessions"].python is sessions


def test_a_name_that_is_no_kind_is_no_attribute() -> None:
    with pytest.raises(AttributeError):
        ms.kafak  # noqa: B018


SCRIPT = """
import millstream as ms

shop = ms.declare("shop")
shop.source("ticks", ms.rate(rows_per_second=1))
shop.query("ticks", to=ms.console({setting}))
"""


def test_a_python_file_is_a_spec(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.py"
    path.write_text(SCRIPT.format(setting=""))

    loaded = load_spec(path, {}, ["sources.ticks.rate.rows_per_second=7"])

    assert loaded.findings == []
    assert loaded.pipeline is not None
    assert loaded.pipeline.folder == tmp_path
    assert resolve_spec(loaded.pipeline)["sources"]["ticks"]["rate"]["rows_per_second"] == 7


def test_a_mistake_in_a_python_file_is_found_at_its_line(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.py"
    path.write_text(SCRIPT.format(setting="num_row=3"))

    (finding,) = load_spec(path, {}).findings

    assert (finding.code, finding.span and finding.span.line) == ("MS002", 6)
    assert finding.span is not None
    assert Path(finding.span.file).name == "pipeline.py"


@pytest.mark.parametrize(
    ("text", "line"),
    [("x = 1\nboom()\n", 2), ("import millstream\n", 1), ("raise SystemExit(3)\n", 1), ("x = (\n", 1)],
)
def test_a_python_file_that_gives_no_pipeline_is_a_finding(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "pipeline.py"
    path.write_text(text)

    (finding,) = load_spec(path, {}).findings

    assert (finding.code, finding.span and finding.span.line) == ("MS010", line)


def test_a_relative_python_file_has_the_line_of_its_own_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pipeline.py").write_text("x = 1\nboom()\n")

    (finding,) = load_spec(Path("pipeline.py"), {}).findings

    assert (finding.code, finding.span and finding.span.line) == ("MS010", 2)


def test_a_mistake_in_an_imported_module_is_found_at_the_import(tmp_path: Path) -> None:
    (tmp_path / "module_with_a_mistake.py").write_text("\n\n\nx = (\n")
    path = tmp_path / "pipeline.py"
    path.write_text("x = 1\nimport module_with_a_mistake\n")

    (finding,) = load_spec(path, {}).findings

    assert (finding.code, finding.span and finding.span.line) == ("MS010", 2)
    assert "module_with_a_mistake.py, line 4" in finding.message
