"""Events of an e-commerce run, made up: what Spark and the supervisor would tell, at times of the caller's choice."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from millstream.engine.events.event_bus import Event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PARTITIONS = 4
EVERY = 5.0
RATES = {"clicks": 396.0, "cart_events": 108.0, "purchases": 42.0}
READS = {"funnel": ["clicks", "cart_events", "purchases"], "purchases": ["purchases"]}
SINKS = {
    "funnel": ["delta lake/funnel"],
    "purchases": ["parquet lake/purchases", "postgres purchases"],
}
# Rows a second that a query's batch manages; beyond it the source runs ahead.
CAPACITY = {"funnel": 1900.0, "purchases": 1400.0}
# No batch reads more of one source: what max_offsets_per_trigger says.
MOST = 4000
RUN = "20260301-120000-4711"


def text(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds(number: float) -> str:
    return "1 second" if number == 1 else f"{number:g} seconds"


def described(
    at: float,
    queries: dict[str, list[str]],
    run: str = RUN,
    pipeline: str = "ecommerce",
    every: float = EVERY,
) -> Event:
    """The first event: the graph, and what check says."""
    sources = list(dict.fromkeys(name for reads in queries.values() for name in reads))
    nodes: list[dict[str, Any]] = [
        _node(f"source.{name}", f"kafka {name}", messages=True) for name in sources
    ]
    edges = []
    catalog = "purchases" in queries
    if catalog:
        nodes.append(_node("source.product_catalog", "parquet data/product_catalog (static)"))
        nodes.append(_node("view.enriched", "sql"))
        edges.append({"from": "source.product_catalog", "to": "view.enriched"})
    for query, reads in queries.items():
        view = "view.enriched" if query == "purchases" else f"view.{query}"
        if query != "purchases":
            nodes.append(_node(view, "sql"))
        nodes.append(
            _node(
                f"query.{query}", f"{'append' if query == 'purchases' else 'update'}, every {seconds(every)}"
            )
        )
        edges += [{"from": f"source.{name}", "to": view} for name in reads]
        edges.append({"from": view, "to": f"query.{query}"})
        for number, sink in enumerate(SINKS.get(query, [f"delta lake/{query}"])):
            nodes.append({**_node(f"sink.{query}.{number}", sink, rows=True), "name": sink})
            edges.append({"from": f"query.{query}", "to": f"sink.{query}.{number}"})
    return Event(
        "described",
        data={
            "version": 1,
            "run": run,
            "pipeline": pipeline,
            "millstream": "0.1.0",
            "graph": {"nodes": nodes, "edges": edges},
            "queries": [
                {"name": query, "trigger": seconds(every), "trigger_seconds": every, "sources": reads}
                for query, reads in queries.items()
            ],
            "alerts": [
                "watermark_lag > 15 minutes",
                "lag growing for 5 minutes",
                "no progress for 3 triggers",
            ],
            "findings": [FINDING] if catalog else [],
            "plans": [
                {"query": query, "steps": STEPS.get(query, ["reads a topic", "appends"])} for query in queries
            ],
        },
        at=text(at),
    )


def _node(id_: str, label: str, *, messages: bool = False, rows: bool = False) -> dict[str, Any]:
    kind, _, name = id_.partition(".")
    return {"id": id_, "kind": kind, "name": name, "label": label, "messages": messages, "rows": rows}


FINDING = {
    "code": "MS309",
    "name": "repeated-key",
    "severity": "warning",
    "message": "query 'purchases': 'merge_on: [event_id]' may meet the same key twice in a batch",
    "file": "pipeline.yml",
    "line": 84,
    "column": 11,
    "end_line": 84,
    "end_column": 31,
    "why": "of two rows with one key the later wins, and which is later is not fixed",
    "fix": "set drop_duplicates_within_watermark: [event_id] at the source",
    "edit": None,
    "query": "purchases",
}
STEPS = {
    "funnel": [
        "reads clicks, cart_events and purchases from Kafka, at most 200,000 records of each a batch",
        "drops repeated deliveries by event_id; keeps one entry of state for each event of the last 5 minutes",
        "counts by window of 5 minutes; a window is final 5 minutes after the newest event",
        "merges into delta lake/funnel by window_start",
    ],
    "purchases": [
        "reads purchases from Kafka, at most 200,000 records a batch",
        "drops repeated deliveries by event_id",
        "joins product_catalog, a table that is read once",
        "appends to parquet lake/purchases, then merges into postgres purchases by event_id",
    ],
}


def guarantees(queries: dict[str, list[str]]) -> list[dict[str, Any]]:
    return [
        {
            "query": query,
            "sink": sink,
            "guarantee": "exactly-once",
            "reasons": [
                "the source can be read again from the offsets in the checkpoint",
                "the same input gives the same rows: the plan is deterministic",
                "rows and the number of the batch are written in one transaction",
            ],
            "weakest": None,
            "conditions": [],
            "planned": True,
        }
        for query in queries
        for sink in SINKS.get(query, [f"delta lake/{query}"])
    ]


@dataclass
class Traffic:
    """A run that has begun, and whose batches come one after another."""

    began: float
    queries: dict[str, list[str]] = field(default_factory=lambda: dict(READS))
    load: Callable[[float], float] = lambda _: 1.0
    """The traffic at a second of the run, as a multiple of the usual."""
    run: str = RUN
    pipeline: str = "ecommerce"
    every: float = EVERY
    """Seconds from one batch of a query to its next."""
    batches: dict[str, int] = field(default_factory=dict)
    _produced: dict[str, list[float]] = field(default_factory=dict)
    _at: dict[str, float] = field(default_factory=dict)
    _read: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    _state: dict[str, float] = field(default_factory=dict)
    _draw: random.Random = field(default_factory=lambda: random.Random(7))

    def opening(self) -> Iterator[Event]:
        """The run and its queries start."""
        yield described(self.began, self.queries, self.run, self.pipeline, self.every)
        messages = {
            "pipeline": self.pipeline,
            "queries": list(self.queries),
            "log": ".millstream/logs/run.log",
        }
        yield Event(
            "run_started",
            data={**messages, "guarantees": guarantees(self.queries)},
            at=text(self.began + 2.9),
        )
        for number, (query, reads) in enumerate(self.queries.items()):
            at = self.began + 3.1 + number / 10
            yield Event(
                "query_started",
                query,
                {
                    "id": query,
                    "run_id": query,
                    "trigger": seconds(self.every),
                    "batch": None,
                    "sources": reads,
                },
                text(at),
            )

    def until(self, end: float) -> Iterator[Event]:
        """Everything from the start to a time, in order."""
        yield from self.opening()
        at = self.began + 5.0
        while at <= end:
            for number, query in enumerate(self.queries):
                yield from self.batch(query, at + 0.06 * self.every * number)
            at += self.every

    def batch(self, query: str, at: float, **more: Any) -> list[Event]:
        """One batch of a query, committed at a time; with the letters it set aside."""
        number = self.batches.get(query, 0)
        self.batches[query] = number + 1
        sources, rows = [], 0
        for source in self.queries[query]:
            messages, read = self._advance(query, source, at)
            sources.append(messages)
            rows += read
        seconds = 0.62 + rows / CAPACITY.get(query, 1900.0) + self._draw.uniform(0, 0.25)
        event_time = at - self._draw.uniform(0.4, 1.6) - 1.2 * max(0.0, self.load(at - self.began) - 1)
        value = self._state.get(query, 0.0)
        self._state[query] = (
            value + (rows * 0.94 - value * self.every / 360)
            if query != "purchases"
            else min(12600.0, value + rows)
        )
        letters = rows // 900 if query == "funnel" and number % 3 == 0 else 0
        data = {
            "batch": number,
            "rows_in": rows,
            "rows_out": (3 if query == "funnel" else rows),
            "input_rate": round(rows / self.every, 1),
            "processed_rate": round(rows / seconds, 1),
            "duration_ms": self._phases(seconds),
            "watermark": text(event_time - 306) if number else None,
            "newest": text(event_time),
            "malformed": letters,
            "expectations": {},
            "state_rows": int(self._state[query]),
            "state_bytes": int(self._state[query] * 351),
            "late_rows": 1 if number % 11 == 9 else 0,
            "sources": sources,
            **more,
        }
        events = [Event("batch_committed", query, data, text(at))]
        if letters:
            reasons = [{"source": "clicks", "reason": "malformed", "records": letters}]
            messages = {
                "batch": number,
                "sources": {"clicks": letters},
                "records": letters,
                "reasons": reasons,
            }
            events.insert(0, Event("dead_letter", query, messages, text(at - 0.1)))
        return events

    def _phases(self, seconds: float) -> dict[str, int]:
        planning, wal, commit, latest = 84, 23, 31, 19
        number = int(seconds * 1000)
        small = {
            "queryPlanning": planning,
            "walCommit": wal,
            "commitOffsets": commit,
            "latestOffset": latest,
            "getBatch": 0,
        }
        return {**small, "addBatch": max(1, number - sum(small.values()) - 40), "triggerExecution": number}

    def _advance(self, query: str, source: str, at: float) -> tuple[dict[str, Any], int]:
        """What the source says after a batch, and the rows of the batch."""
        latest = self._latest(source, at)
        start = self._read.setdefault(query, {}).get(source) or [
            max(0, int(item) - 1) for item in self._latest(source, at - self.every, peek=True)
        ]
        share = MOST / PARTITIONS * RATES.get(source, 200.0) / 400
        end = [
            int(min(high - self._draw.randint(0, 3), low + share))
            for low, high in zip(start, latest, strict=True)
        ]
        end = [max(low, high) for low, high in zip(start, end, strict=True)]
        self._read[query][source] = end
        rows = sum(end) - sum(start)
        messages = {"startOffset": start, "endOffset": end, "latestOffset": [int(item) for item in latest]}
        offsets = {
            key: {source: {str(part): value for part, value in enumerate(values)}}
            for key, values in messages.items()
        }
        return {"description": f"KafkaV2[Subscribe[{source}]]", **offsets, "numInputRows": rows}, rows

    def _latest(self, source: str, at: float, *, peek: bool = False) -> list[float]:
        before = self._at.get(source, self.began)
        produced = list(self._produced.get(source, [600.0 + 41 * part for part in range(PARTITIONS)]))
        missing = max(0.0, at - before)
        second = at - self.began
        pace = (
            RATES.get(source, 200.0)
            * self.load(second)
            * (1 + 0.12 * math.sin(second / 47) + 0.05 * math.sin(second / 11))
        )
        produced = [
            item + missing * pace / PARTITIONS * (1 + 0.06 * (part - 1.5))
            for part, item in enumerate(produced)
        ]
        if not peek:
            self._produced[source], self._at[source] = produced, max(at, before)
        return produced


def failed_run(
    query: str,
    at: float,
    *,
    batch: int = 120,
    offset: int = 4071,
    value: str | None = '{"event_id": "e-90417", "quantity": "twelve"}',
    last: int | None = None,
) -> Event:
    """A query gives up on one record, or on those from `offset` to `last`."""
    offsets = f"offset {offset}" if last is None else f"offsets {offset} to {last}"
    record = f"partition 1 of topic 'purchases', {offsets}"
    return Event(
        "query_failed",
        query,
        {
            "cause": "defect",
            "reason": '[CAST_INVALID_INPUT] The value \'twelve\' of the type "STRING" cannot be cast to "INT"',
            "fix": "correct the code that reads these records, then start again: "
            "the batch will contain the same records",
            "batch": batch,
            "reads": [
                f"partition 0 of topic 'purchases', offsets {offset - 880} to {offset - 827}",
                f"partition 1 of topic 'purchases', offsets {offset - 31} to {offset + 28}",
            ],
            "record": [record],
            "value": value,
        },
        text(at),
    )
