"""The model of a pipeline, the same whether it was written in YAML or in Python."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, SerializeAsAny, StringConstraints, model_validator

from millstream.connectors import registry
from millstream.connectors.letters import Box
from millstream.connectors.sink import Sink
from millstream.connectors.source import Source
from millstream.pipeline.kinds import KindEntry
from millstream.pipeline.stateful import ROCKSDB, STORE, Hook, Stateful
from millstream.spec.alert import condition
from millstream.spec.avro import Avro
from millstream.spec.backoff import Backoff
from millstream.spec.base import Spec
from millstream.spec.expectation import Expectation, Otherwise
from millstream.spec.guarantee import Guarantee
from millstream.spec.location import Location
from millstream.spec.mode import OutputMode
from millstream.spec.secret import SecretUrl
from millstream.spec.severity import RuleSeverity
from millstream.spec.trigger import Trigger
from millstream.spec.watermark import Watermark

# Spark takes source and view names as SQL identifiers; a query's name is also a folder and a metric's label.
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
QueryName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$")]


def _alert(text: str) -> str:
    """An alert's text with single spaces. Raises ValueError for one that says no condition."""
    return condition(text).text


AlertText = Annotated[
    str,
    AfterValidator(_alert),
    Field(examples=["watermark_lag > 15 minutes", "lag growing for 5 minutes", "no progress for 3 triggers"]),
]


class OnMalformed(StrEnum):
    """What becomes of a record that its format or schema cannot read."""

    FAIL = "fail"
    """The query stops and names the record."""
    DROP = "drop"
    """The record is counted and left out."""
    DEAD_LETTER = "dead_letter"
    """The record is set aside with the reason, and the batch goes on."""


class OnError(StrEnum):
    """What becomes of a batch that a sink refuses."""

    FAIL = "fail"
    """The query stops, or is retried when the cause is an outage."""
    DEAD_LETTER = "dead_letter"
    """The batch is set aside for this sink and delivered later, in order; the query and its other sinks go on."""
    DEAD_LETTER_ROWS = "dead_letter_rows"
    """Rows that the sink refuses become dead letters, and the rest of the batch is written; an outage as `fail`."""


class Format(StrEnum):
    """How the bytes of a message are decoded."""

    JSON = "json"
    """One JSON object a message."""
    CSV = "csv"
    """One line a message, columns in the schema's order."""
    AVRO = "avro"
    """A record in Avro's binary form, of the schema in `avro_value`."""
    RAW = "raw"
    """Not decoded: the column `value` as it came."""


class Keep(StrEnum):
    """Columns of a message that may stand beside its decoded value."""

    KEY = "key"
    TOPIC = "topic"
    PARTITION = "partition"
    OFFSET = "offset"
    TIMESTAMP = "timestamp"
    HEADERS = "headers"


class SourceEntry(KindEntry):
    """A source of a pipeline: its kind and what is done with its rows before any view sees them."""

    kind_field = "source"
    noun = "source"
    manual = "sources"

    source: SerializeAsAny[Source]
    """The kind and its settings; in a spec the kind's name is the key."""
    format: Format = Format.JSON
    """How `value` is decoded, for kinds whose rows are undecoded messages."""
    columns: dict[str, str] | None = Field(default=None, alias="schema")
    """The columns and their Spark SQL types; of Avro values those of their own schema."""
    avro_value: Avro | None = None
    """With `format: avro`, the schema of the values and what stands before them."""
    options: dict[str, str] = Field(default_factory=dict)
    """Options of Spark's JSON or CSV reader for decoding, such as `timestampFormat` or `sep`."""
    keep: tuple[Keep, ...] = ()
    """Columns of the message to keep beside its decoded value."""
    watermark: Watermark | None = None
    """How late a row may be."""
    drop_duplicates_within_watermark: tuple[str, ...] = ()
    """Keys that tell a repeated delivery; of rows with the same keys within the watermark one is kept."""
    on_malformed: OnMalformed = OnMalformed.FAIL
    """What becomes of a record that cannot be decoded."""
    expect: dict[Name, Expectation] = Field(default_factory=dict)
    """What every decoded row is expected to be, by a name of your choice."""
    static: bool = False
    """Read once as a table, and not as a stream."""

    @model_validator(mode="after")
    def _by_avro(self) -> SourceEntry:
        """An Avro schema says the columns."""
        if self.avro_value is not None and self.columns is None:
            object.__setattr__(self, "columns", self.avro_value.columns)
        return self

    @property
    def ddl(self) -> str | None:
        """The schema as DDL, or None when none is declared."""
        if self.columns is None:
            return None
        return ", ".join(f"`{name.replace('`', '``')}` {kind}" for name, kind in self.columns.items())


class View(Stateful):
    """A named step: one SQL statement, a Python function from DataFrames to a DataFrame, or one with state."""

    sql: str | None = None
    """A SELECT over sources and other views."""
    python: str | Callable[..., Any] | None = None
    """A function as `module:name`; its parameters are the names of the sources and views it reads."""
    file: str | None = None
    """The file the SQL stands in, when it is not the spec itself."""
    expect: dict[Name, Expectation] = Field(default_factory=dict)
    """What every row of the view is expected to be, by a name of your choice."""

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, value: Any) -> Any:
        """A bare text is the view's SQL."""
        if not isinstance(value, str | dict | View):
            raise ValueError("a view is SQL, {file: views/name.sql} or {python: 'module:function'}")
        return {"sql": value} if isinstance(value, str) else value

    @property
    def hook(self) -> tuple[str, Hook] | None:
        """The key that names the user's function, and the function; None for SQL."""
        found = ((key, getattr(self, key)) for key in _HOOKS)
        return next(((key, one) for key, one in found if one is not None), None)

    @model_validator(mode="after")
    def _one(self) -> View:
        given = [key for key in ("sql", *_HOOKS) if getattr(self, key) is not None]
        if not given:
            raise ValueError("a view is either 'sql' or 'python'")
        if len(given) > 1:
            raise ValueError(f"a view is either '{given[0]}' or '{given[1]}', not both")
        return self


_HOOKS = ("python", "transform_with_state", "apply_in_pandas_with_state")


class SinkEntry(KindEntry):
    """A sink of a query: its kind and what is done when it fails."""

    kind_field = "sink"
    noun = "sink"
    manual = "sinks"

    sink: SerializeAsAny[Sink]
    """The kind and its settings; in a spec the kind's name is the key."""
    on_error: OnError = OnError.FAIL
    """What becomes of a batch that this sink refuses."""
    guarantee: Guarantee | None = None
    """What must be kept here: a check refuses a pipeline that keeps less."""

    @model_validator(mode="after")
    def _as_demanded(self) -> SinkEntry:
        """A kind that can keep more, at a cost, does so where more is demanded."""
        if self.guarantee in (Guarantee.EXACTLY_ONCE, Guarantee.EFFECTIVELY_ONCE):
            object.__setattr__(self, "sink", self.sink.stronger())
        return self


class LettersEntry(KindEntry):
    """The place where dead letters are kept: a bare path for a Delta table, or a kind with its settings."""

    kind_field = "box"
    noun = "place of dead letters"
    manual = "dead-letters"

    box: SerializeAsAny[Box]
    """The kind and its settings; in a spec the kind's name is the key."""

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, value: Any) -> Any:
        """A bare path is the plain kind's."""
        return {registry.plain_box().kind: value} if isinstance(value, str) else value


class Query(Spec):
    """One `StreamingQuery`: a view or source, written to one or more sinks, with a checkpoint of its own."""

    from_: str | None = Field(default=None, alias="from")
    """The view or source that is written; the query's own name unless given."""
    output_mode: OutputMode = OutputMode.APPEND
    """What the sinks get after each batch."""
    trigger: Trigger | None = None
    """When the next batch starts; the pipeline's default unless given."""
    checkpoint: Location | None = None
    """The checkpoint folder; `<checkpoints>/<query>` unless given."""
    pool: str | None = Field(default=None, min_length=1, examples=["urgent"])
    """The pool of Spark's fair scheduler for its batches; one of its own, called as the query, unless given."""
    to: tuple[SinkEntry, ...] = Field(min_length=1)
    """Where the rows go; one sink or several."""

    @model_validator(mode="before")
    @classmethod
    def _single(cls, value: Any) -> Any:
        """A single sink need not stand in a list."""
        if isinstance(value, dict) and isinstance(value.get("to"), dict | SinkEntry):
            return {**value, "to": (value["to"],)}
        return value


class Defaults(Spec):
    """Values for every query that does not say otherwise."""

    trigger: Trigger = Trigger()
    """When the next batch starts."""
    checkpoints: Location = Location(".millstream/checkpoints")
    """The folder that holds a checkpoint folder for each query."""
    retry: Backoff = Backoff()
    """How a query that met an outage waits before it starts again."""


class Pipeline(Spec):
    """A whole pipeline."""

    name: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")
    """The pipeline's name, in logs, metrics and sinks' own records."""
    defaults: Defaults = Defaults()
    """Values for every query that does not say otherwise."""
    params: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Named parameters of the SQL: `:name` in a view."""
    spark: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Spark configuration, as in spark-defaults.conf."""
    rules: dict[str, RuleSeverity] = Field(default_factory=dict)
    """The severity of findings by their code, where it is not to be the rule's own."""
    sources: dict[Name, SourceEntry]
    """Where rows come from, by name."""
    views: dict[Name, View] = Field(default_factory=dict)
    """Named steps between sources and queries."""
    queries: dict[QueryName, Query]
    """What is written where, by name."""
    alerts: tuple[AlertText, ...] = ()
    """What is not to happen in a run, shown on the live page and told to `alerts_to`."""
    alerts_to: SecretUrl | None = None
    """An address over HTTP that gets a JSON object when an alert begins to fire, and when it is over."""
    dead_letters: LettersEntry | None = None
    """Where records set aside are kept; the Delta table `<checkpoints>/_dead_letters` unless given."""
    folder: Path = Field(default=Path(), exclude=True)
    """The folder of the spec's file: relative paths start here."""
    file: str | None = Field(default=None, exclude=True)
    """The spec's file, for messages."""

    @model_validator(mode="after")
    def _stored(self) -> Pipeline:
        """A processor keeps several values a key, which only RocksDB can; a store that is set stays."""
        if any(view.transform_with_state is not None for view in self.views.values()):
            self.spark.setdefault(STORE, ROCKSDB)
        return self

    def expected(self, name: str) -> dict[str, Expectation]:
        """What the rows of a source or view are expected to be."""
        entry = self.sources.get(name) or self.views.get(name)
        return entry.expect if entry else {}

    def sets_aside(self, name: str) -> bool:
        """May rows of that source or view become dead letters?"""
        source = self.sources.get(name)
        return (source is not None and source.on_malformed is OnMalformed.DEAD_LETTER) or any(
            one.otherwise is Otherwise.DEAD_LETTER for one in self.expected(name).values()
        )

    def reads(self, query: str) -> str:
        """The view or source that a query writes."""
        return self.queries[query].from_ or query

    def trigger(self, query: str) -> Trigger:
        """When a query's next batch starts."""
        return self.queries[query].trigger or self.defaults.trigger

    def pool(self, query: str) -> str:
        """The scheduler's pool that a query's batches run in."""
        return self.queries[query].pool or query

    def checkpoint(self, query: str) -> Location:
        """A query's checkpoint folder."""
        return self.queries[query].checkpoint or Location(f"{self.checkpoints}/{query}")

    @property
    def checkpoints(self) -> Location:
        """The folder of checkpoints, resolved against the spec's folder."""
        given = self.defaults.checkpoints
        return given if "://" in given else Location(self.folder / given)

    @property
    def letters(self) -> Box:
        """Where records set aside are kept."""
        if self.dead_letters is not None:
            return self.dead_letters.box
        usual = registry.plain_box()
        return usual.model_validate({usual.main: f"{self.checkpoints}/_dead_letters"})
