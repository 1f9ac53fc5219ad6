"""The shape of what the page reads, as docs/reference/page-api.md describes it; the JSON schema is made from it."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict

State = Literal["starting", "running", "idle", "slow", "waiting", "retrying", "stalled", "failed", "stopped"]
Level = Literal["ok", "warn", "bad", "off"]

LEVELS: dict[State, Level] = {
    "starting": "ok",
    "running": "ok",
    "idle": "ok",
    "slow": "warn",
    "waiting": "warn",
    "retrying": "warn",
    "stalled": "bad",
    "failed": "bad",
    "stopped": "off",
}
"""How a state is coloured."""
GRAVITY: tuple[State, ...] = (
    "stopped",
    "idle",
    "running",
    "starting",
    "slow",
    "waiting",
    "retrying",
    "stalled",
    "failed",
)
"""From the state that is best to the one that is worst."""
PHASES = (
    "addBatch",
    "latestOffset",
    "getBatch",
    "queryPlanning",
    "walCommit",
    "commitOffsets",
    "other",
)
"""The phases of a batch as Spark names them; `other` is what is left of the whole."""


class Run(TypedDict):
    """Which run it is."""

    id: str
    pipeline: str
    started: str
    ended: str | None
    exit_code: int | None
    live: bool
    millstream: str


class Worst(TypedDict):
    """The query that is worst off, and since when."""

    query: str
    state: State
    level: Level
    since: str
    why: str


class Node(TypedDict):
    """A source, view, query or sink. `rate` in rows a second, `busy` batch time over trigger."""

    id: str
    kind: Literal["source", "view", "query", "sink"]
    name: str
    label: str
    state: State | None
    level: Level
    rate: float | None
    busy: float | None
    queries: list[str]
    messages: bool
    rows: bool


# `from` is a keyword of Python, hence the other way to write the class.
Edge = TypedDict("Edge", {"from": str, "to": str, "rate": float | None})


class Graph(TypedDict):
    """Who reads whom."""

    nodes: list[Node]
    edges: list[Edge]


class Place(TypedDict):
    """Where a record stands."""

    topic: str
    partition: int
    offset: int


class Failure(TypedDict):
    """Why a query gave up."""

    cause: str
    reason: str
    fix: str
    batch: int | None
    reads: list[str]
    record: list[str]
    place: Place | None
    value: str | None


class Query(TypedDict):
    """A query: its state, and the figures of its last batch. Rates in rows a second."""

    name: str
    state: State
    level: Level
    since: str
    why: str
    trigger: str
    trigger_seconds: float | None
    batch: int | None
    last_batch_at: str | None
    rows_in: int
    rows_out: int
    input_rate: float | None
    processed_rate: float | None
    output_rate: float | None
    batch_seconds: float | None
    busy: float | None
    watermark: str | None
    newest: str | None
    watermark_lag_seconds: float | None
    state_rows: int
    state_bytes: int
    late_rows: int
    malformed: int
    dead_letters: int
    broken: int
    restarts: int
    behind: int | None
    rates: list[float]
    failure: Failure | None


class Lag(TypedDict):
    """How far a query is behind one partition of a topic, in records."""

    query: str
    source: str
    topic: str
    partition: str
    offset: int
    latest: int
    behind: int
    growing_since: str | None
    history: list[int]


class Reason(TypedDict):
    """Dead letters of one reason."""

    reason: str
    source: str
    query: str
    records: int
    last: str


class SetAside(TypedDict):
    """Batches that wait for a sink."""

    query: str
    sink: str
    batches: int
    reason: str
    since: str


class Letters(TypedDict):
    """What was set aside in this run."""

    records: int
    reasons: list[Reason]
    set_aside: list[SetAside]


class Entry(TypedDict):
    """A line of the event log."""

    id: str
    at: str
    event: str
    query: str
    level: Level
    text: str


class Plan(TypedDict):
    """What a query does, in words."""

    query: str
    steps: list[str]


class Alert(TypedDict):
    """An alert of the spec, for one query."""

    name: str
    query: str
    firing: bool
    since: str | None
    value: float | None
    text: str


class Document(TypedDict):
    """Everything the page shows first: the answer of `/api/state`."""

    version: int
    at: str
    id: str
    run: Run
    state: State
    level: Level
    worst: Worst | None
    freshness_seconds: float | None
    rows_in: int
    input_rate: float | None
    behind: int | None
    graph: Graph
    queries: list[Query]
    lag: list[Lag]
    letters: Letters
    log: list[Entry]
    findings: list[dict[str, Any]]
    guarantees: list[dict[str, Any]]
    plans: list[Plan]
    alerts: list[Alert]
