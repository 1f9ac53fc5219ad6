"""The model of a pipeline, the same whether it was written in YAML or in Python."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, SerializeAsAny, StringConstraints, model_validator

from millstream.checkpoint.remote.path import CheckpointPath, open_path
from millstream.connectors import registry
from millstream.connectors.api.dead_letters import DeadLetterStore
from millstream.connectors.api.sink import Sink
from millstream.connectors.api.source import Source
from millstream.pipeline.kinds import KindEntry
from millstream.pipeline.stateful import ROCKSDB, STORE, Hook, StateSettings
from millstream.spec.alert import parse_condition
from millstream.spec.avro.schema import Avro
from millstream.spec.backoff import Backoff
from millstream.spec.base import Spec
from millstream.spec.expectation import Expectation, Otherwise
from millstream.spec.guarantee import Guarantee
from millstream.spec.location import Location
from millstream.spec.output_mode import OutputMode
from millstream.spec.rule_severity import RuleSeverity
from millstream.spec.secrets.redaction import REDACTOR
from millstream.spec.secrets.secret import WebhookUrl, protect_settings
from millstream.spec.trigger import Trigger
from millstream.spec.watermark import Watermark

# Spark takes source and view names as SQL identifiers; a query's name is also a folder and a metric's label.
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
QueryName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$")]


def _alert(text: str) -> str:
    """Return an alert's text with single spaces. Raises ValueError for a text that is not a condition."""
    return parse_condition(text).text


AlertText = Annotated[
    str,
    AfterValidator(_alert),
    Field(examples=["watermark_lag > 15 minutes", "lag growing for 5 minutes", "no progress for 3 triggers"]),
]


class OnMalformed(StrEnum):
    """Treatment of a record that its format or schema cannot decode."""

    FAIL = "fail"
    """The query stops and names the record."""
    DROP = "drop"
    """The record is counted and dropped."""
    DEAD_LETTER = "dead_letter"
    """The record and the reason are stored as a dead letter, and the batch continues."""


class OnError(StrEnum):
    """Treatment of a batch that a sink refuses."""

    FAIL = "fail"
    """The query stops; after an outage it is restarted."""
    DEAD_LETTER = "dead_letter"
    """The batch is spooled (stored for this sink) and delivered later, in order. The query and its other sinks
    continue."""
    DEAD_LETTER_ROWS = "dead_letter_rows"
    """Rows that the sink refuses become dead letters, and the rest of the batch is written. An outage is treated as
    with `fail`."""


class Format(StrEnum):
    """Encoding of the bytes of a message."""

    JSON = "json"
    """One JSON object per message."""
    CSV = "csv"
    """One line per message, columns in the schema's order."""
    AVRO = "avro"
    """A record in Avro's binary form, with the schema in `avro_value`."""
    RAW = "raw"
    """Not decoded: the column `value` has the bytes of the message."""


class KeptColumn(StrEnum):
    """Columns of a message that can be kept in addition to its decoded value."""

    KEY = "key"
    TOPIC = "topic"
    PARTITION = "partition"
    OFFSET = "offset"
    TIMESTAMP = "timestamp"
    HEADERS = "headers"


class SourceEntry(KindEntry):
    """A source of a pipeline: its kind, and how its records become rows before a view reads them."""

    kind_field = "source"
    noun = "source"
    manual = "sources"

    source: SerializeAsAny[Source]
    """The kind and its settings; in a spec the kind's name is the key."""
    format: Format = Format.JSON
    """The encoding of the messages, for kinds such as `kafka` whose records are bytes."""
    columns: dict[str, str] | None = Field(default=None, alias="schema")
    """The columns and their Spark SQL types. For Avro values, the default is the columns of the Avro schema."""
    avro_value: Avro | None = None
    """With `format: avro`, the schema of the values and the header that precedes them."""
    options: dict[str, str] = Field(default_factory=dict)
    """Options of Spark's JSON or CSV reader for decoding, such as `timestampFormat` or `sep`."""
    keep: tuple[KeptColumn, ...] = ()
    """Columns of the message to keep in addition to its decoded value."""
    watermark: Watermark | None = None
    """The event-time column, and how late a row may arrive."""
    drop_duplicates_within_watermark: tuple[str, ...] = ()
    """Columns that identify duplicates: of several rows with equal values in these columns, only one is kept. Needs
    a watermark, whose delay must be longer than the time within which duplicates arrive. A row without a value in
    any of them is malformed."""
    on_malformed: OnMalformed = OnMalformed.FAIL
    """What happens to a record that cannot be decoded, or whose event time or deduplication key is missing."""
    expect: dict[Name, Expectation] = Field(default_factory=dict)
    """Conditions that every decoded row should meet, each under a name of your choice."""
    static: bool = False
    """Read the source once as a table instead of as a stream."""

    @model_validator(mode="after")
    def _take_avro_columns(self) -> SourceEntry:
        """Take the columns from the Avro schema if none are declared."""
        if self.avro_value is not None and self.columns is None:
            object.__setattr__(self, "columns", self.avro_value.columns)
        return self

    @property
    def ddl(self) -> str | None:
        """The schema as DDL, or None if none is declared."""
        if self.columns is None:
            return None
        return ", ".join(f"`{name.replace('`', '``')}` {kind}" for name, kind in self.columns.items())


class View(StateSettings):
    """A named intermediate result: SQL, a Python function that returns a DataFrame, or a stateful function."""

    sql: str | None = None
    """A SELECT over sources and other views."""
    python: str | Callable[..., Any] | None = None
    """A function as `module:name`; its parameters are the names of the sources and views it reads."""
    file: str | None = None
    """The file that contains the SQL, if it is not in the spec itself."""
    expect: dict[Name, Expectation] = Field(default_factory=dict)
    """Conditions that every row of the view should meet, each under a name of your choice."""

    @model_validator(mode="before")
    @classmethod
    def _accept_plain_string(cls, value: Any) -> Any:
        """Read a plain string as the view's SQL."""
        if not isinstance(value, str | dict | View):
            raise ValueError("a view is SQL, {file: views/name.sql} or {python: 'module:function'}")
        return {"sql": value} if isinstance(value, str) else value

    @property
    def hook(self) -> tuple[str, Hook] | None:
        """The key that names the user's function, and the function; None for a SQL view."""
        hooks = ((key, getattr(self, key)) for key in _HOOKS)
        return next(((key, hook) for key, hook in hooks if hook is not None), None)

    @model_validator(mode="after")
    def _require_one_kind(self) -> View:
        keys = [key for key in ("sql", *_HOOKS) if getattr(self, key) is not None]
        if not keys:
            raise ValueError("a view is either 'sql' or 'python'")
        if len(keys) > 1:
            raise ValueError(f"a view is either '{keys[0]}' or '{keys[1]}', not both")
        return self


_HOOKS = ("python", "transform_with_state", "apply_in_pandas_with_state")


class SinkEntry(KindEntry):
    """A sink of a query: its kind, and what happens when it fails."""

    kind_field = "sink"
    noun = "sink"
    manual = "sinks"

    sink: SerializeAsAny[Sink]
    """The kind and its settings; in a spec the kind's name is the key."""
    on_error: OnError = OnError.FAIL
    """What happens to a batch that this sink refuses."""
    guarantee: Guarantee | None = None
    """The delivery guarantee that this sink must have. If the computed guarantee is weaker, `check` reports an
    error and `run` does not start."""

    @model_validator(mode="after")
    def _strengthen_sink(self) -> SinkEntry:
        """Use the sink's strongest guarantee, which may cost more, if the spec asks for a strong one."""
        if self.guarantee in (Guarantee.EXACTLY_ONCE, Guarantee.EFFECTIVELY_ONCE):
            object.__setattr__(self, "sink", self.sink.with_strongest_guarantee())
        return self


class LettersEntry(KindEntry):
    """The store of dead letters: the path of a Delta table, or a kind with its settings."""

    kind_field = "box"
    noun = "dead-letter store"
    manual = "dead-letters"

    box: SerializeAsAny[DeadLetterStore]
    """The kind and its settings; in a spec the kind's name is the key."""

    @model_validator(mode="before")
    @classmethod
    def _accept_plain_string(cls, value: Any) -> Any:
        """Read a plain string as the path of the default kind."""
        return {registry.default_dead_letter_store().kind: value} if isinstance(value, str) else value


class Query(Spec):
    """One `StreamingQuery`: a view or source, written to one or more sinks, with its own checkpoint."""

    from_: str | None = Field(default=None, alias="from")
    """The view or source whose rows are written; the default is the view or source with the name of the query."""
    output_mode: OutputMode = OutputMode.APPEND
    """The rows that the sinks receive after each batch."""
    trigger: Trigger | None = None
    """When the query starts its next batch; defaults to the trigger in `defaults`."""
    checkpoint: Location | None = None
    """The checkpoint folder; defaults to `<checkpoints>/<query>`."""
    pool: str | None = Field(default=None, min_length=1, examples=["urgent"])
    """The pool of Spark's fair scheduler that runs the batches; the default is a pool with the name of the query."""
    to: tuple[SinkEntry, ...] = Field(min_length=1)
    """The sinks to which the rows are written: one, or a list."""

    @model_validator(mode="before")
    @classmethod
    def _wrap_single_sink(cls, value: Any) -> Any:
        """Accept a single sink that is not in a list."""
        if isinstance(value, dict) and isinstance(value.get("to"), dict | SinkEntry):
            return {**value, "to": (value["to"],)}
        return value


class Defaults(Spec):
    """Default values for every query of the pipeline."""

    trigger: Trigger = Trigger()
    """When a query starts its next batch."""
    checkpoints: Location = Location(".millstream/checkpoints")
    """The folder that contains a checkpoint folder for each query."""
    retry: Backoff = Backoff()
    """How long a query waits after an outage before it is started again, and when it is no longer restarted."""


class Pipeline(Spec):
    """A complete pipeline: sources, views, queries and their settings."""

    name: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")
    """The pipeline's name, used in logs, in metrics and in the sinks' ledgers."""
    defaults: Defaults = Defaults()
    """Default values for every query of the pipeline."""
    params: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Values of named parameters, which the SQL of views uses as `:name`."""
    spark: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Spark configuration, as in spark-defaults.conf."""
    rules: dict[str, RuleSeverity] = Field(default_factory=dict)
    """The severity of findings, by their code, instead of the default severity."""
    sources: dict[Name, SourceEntry]
    """The sources of rows, by name."""
    views: dict[Name, View] = Field(default_factory=dict)
    """Named intermediate results between sources and queries."""
    queries: dict[QueryName, Query]
    """The streaming queries, by name."""
    alerts: tuple[AlertText, ...] = ()
    """Conditions that should not be true during a run. While one is true, the live page shows an alert, and
    `alerts_to` is informed."""
    alerts_to: WebhookUrl | None = None
    """An HTTP address to which a JSON object is sent when an alert begins or ends, and when a query fails."""
    dead_letters: LettersEntry | None = None
    """The store of dead letters; defaults to the Delta table `<checkpoints>/_dead_letters`."""
    folder: Path = Field(default=Path(), exclude=True)
    """The folder of the spec's file: relative paths start here."""
    file: str | None = Field(default=None, exclude=True)
    """The spec's file, named in messages."""

    @model_validator(mode="after")
    def _set_state_store(self) -> Pipeline:
        """Default to RocksDB for processors, because only RocksDB stores several values per key."""
        if any(view.transform_with_state is not None for view in self.views.values()):
            self.spark.setdefault(STORE, ROCKSDB)
        return self

    @model_validator(mode="after")
    def _register_secrets(self) -> Pipeline:
        """Redact settings that are secret by their name from here on, but never the pipeline's own names."""
        protect_settings(self)
        REDACTOR.publish(self.name, *self.sources, *self.views, *self.queries)
        return self

    def expected(self, name: str) -> dict[str, Expectation]:
        """Return the expectations on the rows of a source or view."""
        entry = self.sources.get(name) or self.views.get(name)
        return entry.expect if entry else {}

    def may_write_dead_letters(self, name: str) -> bool:
        """Return whether rows of a source or view may become dead letters."""
        source = self.sources.get(name)
        return (source is not None and source.on_malformed is OnMalformed.DEAD_LETTER) or any(
            expectation.otherwise is Otherwise.DEAD_LETTER for expectation in self.expected(name).values()
        )

    def reads(self, query: str) -> str:
        """Return the view or source that a query writes."""
        return self.queries[query].from_ or query

    def writers_of(self, targets: frozenset[str]) -> list[str]:
        """Return the queries that write one of these targets, which have the format of `Sink.writes_to`."""
        return [
            name
            for name, query in self.queries.items()
            if any(targets & entry.sink.writes_to() for entry in query.to)
        ]

    def trigger(self, query: str) -> Trigger:
        """Return when a query's next batch starts."""
        return self.queries[query].trigger or self.defaults.trigger

    def pool(self, query: str) -> str:
        """Return the scheduler pool that runs a query's batches."""
        return self.queries[query].pool or query

    def checkpoint(self, query: str) -> Location:
        """Return a query's checkpoint folder."""
        return self.queries[query].checkpoint or Location(f"{self.checkpoints}/{query}")

    def checkpoint_folder(self, query: str) -> CheckpointPath:
        """Return the path of a query's checkpoint folder, on this machine or on a remote file system."""
        place = self.checkpoint(query)
        return open_path(place, place.local)

    @property
    def checkpoints_folder(self) -> CheckpointPath:
        """The path of the folder of the checkpoints."""
        return open_path(self.checkpoints, self.checkpoints.local)

    @property
    def checkpoints(self) -> Location:
        """The folder of the checkpoints, resolved against the spec's folder."""
        folder = self.defaults.checkpoints.local
        return self.defaults.checkpoints if folder is None else Location(self.folder / folder)

    @property
    def session_zone(self) -> str:
        """The time zone of the pipeline's Spark session."""
        return str(self.spark.get("spark.sql.session.timeZone", "UTC"))

    @property
    def letters(self) -> DeadLetterStore:
        """The store of dead letters."""
        if self.dead_letters is not None:
            return self.dead_letters.box
        default_kind = registry.default_dead_letter_store()
        return default_kind.model_validate({default_kind.main: f"{self.checkpoints}/_dead_letters"})
