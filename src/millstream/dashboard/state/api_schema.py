"""Define the JSON that the page reads; the schema in docs/reference/page-api.md is generated from it."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

State = Literal[
    "starting",
    "running",
    "idle",
    "watermark_stuck",
    "slow",
    "falling_behind",
    "spooling",
    "waiting",
    "retrying",
    "stalled",
    "failed",
    "stopped",
]
Level = Literal["ok", "start", "warn", "bad", "off"]
PartKind = Literal["source", "plan", "sink", "work", "commit", "other", "state"]

LEVELS: dict[State, Level] = {
    "starting": "start",
    "running": "ok",
    "idle": "ok",
    "watermark_stuck": "warn",
    "slow": "warn",
    "falling_behind": "warn",
    "spooling": "warn",
    "waiting": "warn",
    "retrying": "warn",
    "stalled": "bad",
    "failed": "bad",
    "stopped": "off",
}
"""The level of each state, which sets its colour."""
GRAVITY: tuple[State, ...] = (
    "stopped",
    "idle",
    "running",
    "starting",
    "watermark_stuck",
    "slow",
    "falling_behind",
    "spooling",
    "waiting",
    "retrying",
    "stalled",
    "failed",
)
"""All states, from best to worst."""
PHASES = (
    "addBatch",
    "latestOffset",
    "getBatch",
    "queryPlanning",
    "walCommit",
    "commitOffsets",
    "other",
)
"""The phases of a batch by Spark's names; `other` is the rest of the batch."""


class Run(TypedDict):
    """The run."""

    id: str
    pipeline: str
    started: str
    ended: str | None
    exit_code: int | None
    live: bool
    millstream: str


class Worst(TypedDict):
    """The query in the worst state, and since when."""

    query: str
    state: State
    level: Level
    since: str
    why: str


class Headline(TypedDict):
    """The sentence at the top of the page, what it rests on, and since when it holds."""

    level: Level
    word: str
    text: str
    detail: str
    also: str
    since: str | None
    alert: str | None


class BatchPart(TypedDict):
    """A part of the last batch's duration; `state` is time of all tasks together and inside the others."""

    kind: PartKind
    name: str
    seconds: float


class RunningBatchDetails(TypedDict):
    """The batch that runs now: for how long, and the sinks that have it."""

    batch: int
    seconds: float
    sinks: list[str]
    written: list[str]


class Node(TypedDict):
    """A source, view, query or sink. Rates are in rows per second; `busy` is batch time divided by trigger."""

    id: str
    kind: Literal["source", "view", "query", "sink"]
    name: str
    label: str
    state: State | None
    level: Level
    rate: float | None
    arrival_rate: float | None
    busy: float | None
    queries: list[str]
    messages: bool
    rows: bool


# Written as a call because `from` is a keyword of Python.
Edge = TypedDict("Edge", {"from": str, "to": str, "rate": float | None})


class Graph(TypedDict):
    """The graph of the pipeline."""

    nodes: list[Node]
    edges: list[Edge]


class Place(TypedDict):
    """The place of a record."""

    topic: str
    partition: int
    offset: int


class Failure(TypedDict):
    """The reason why a query failed for good."""

    cause: str
    reason: str
    fix: str
    batch: int | None
    reads: list[str]
    record: list[str]
    place: Place | None
    value: str | None


class QueryDetails(TypedDict):
    """A query: its state, and the figures of its last batch. Rates are in rows per second."""

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
    rows_removed: int
    restarts: int
    behind: int | None
    behind_at: str | None
    arrival_rate: float | None
    caught_up_in_seconds: float | None
    running: RunningBatchDetails | None
    parts: list[BatchPart]
    rates: list[float]
    failure: Failure | None


class Lag(TypedDict):
    """The lag of a query in a topic, in records."""

    query: str
    source: str
    topic: str
    partitions: int
    latest_at: str
    behind: int | None
    growing_since: str | None
    history: list[int]
    arrival_rate: float | None
    read_rate: float | None


class PartitionLag(TypedDict):
    """The lag of a query in one partition of a topic, in records."""

    source: str
    topic: str
    partition: int
    offset: int | None
    latest: int
    behind: int | None


class Reason(TypedDict):
    """Dead letters with the same reason."""

    reason: str
    source: str
    query: str
    records: int
    last: str


class SetAside(TypedDict):
    """Spooled batches that wait for a sink."""

    query: str
    sink: str
    batches: int
    reason: str
    since: str


class Letters(TypedDict):
    """Dead letters and spooled batches of this run."""

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


class PlanOperator(TypedDict):
    """An operator of a plan: its name, its sentence, how often the plan has it, and whether it has state."""

    name: str
    text: str
    times: int
    state: bool


class Plan(TypedDict):
    """The steps of a query in words, and its operators by name; older logs have no operators."""

    query: str
    steps: list[str]
    operators: NotRequired[list[PlanOperator]]


class Alert(TypedDict):
    """An alert of the spec for one query."""

    name: str
    query: str
    firing: bool
    since: str | None
    value: float | None
    text: str


class OpenFilesCount(TypedDict):
    """The open files of a process, `jvm` or `python`, sockets included, and the most that it may have open."""

    process: str
    open: int
    max: int


class History(TypedDict):
    """The figures of the run over its last minutes, one value every few seconds, oldest first."""

    input_rate: list[float | None]
    behind: list[int | None]
    freshness: list[float | None]
    busy: list[float | None]


class Document(TypedDict):
    """The response of `/api/state`: everything that the page shows first."""

    version: int
    at: str
    id: str
    run: Run
    state: State
    level: Level
    worst: Worst | None
    headline: Headline
    freshness_seconds: float | None
    rows_in: int
    input_rate: float | None
    behind: int | None
    behind_at: str | None
    caught_up_in_seconds: float | None
    busy: float | None
    history: History
    graph: Graph
    queries: list[QueryDetails]
    lag: list[Lag]
    letters: Letters
    log: list[Entry]
    findings: list[dict[str, Any]]
    guarantees: list[dict[str, Any]]
    plans: list[Plan]
    alerts: list[Alert]
    actions: list[str]
    open_files: list[OpenFilesCount]
