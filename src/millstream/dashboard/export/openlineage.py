"""Send the runs of queries as OpenLineage events: JSON over HTTP, by its specification 2-0-2.

Does not use the client library, which needs four packages for one POST. A test validates the events.
"""

from __future__ import annotations

import json
import urllib.request
import uuid
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from millstream import __version__
from millstream.dashboard.state import timestamps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.connectors.api.values.lineage_dataset import LineageDataset
    from millstream.engine.events.event_bus import Event
    from millstream.pipeline.model import Pipeline

SPEC = "https://openlineage.io/spec"
SCHEMA = f"{SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
PRODUCER = f"urn:millstream:{__version__}"
ENDPOINT = "api/v1/lineage"
# Seconds to wait for a response of the receiver.
TIMEOUT = 5.0
# Seconds between two RUNNING events of a query; the first follows its first batch.
EVERY = 60.0
Json = dict[str, Any]


@dataclass(frozen=True)
class Receiver:
    """The address that events are sent to. The key is a secret, so it is sent and never logged."""

    address: str
    key: str | None = field(default=None, repr=False)

    def post(self, event: Json) -> None:
        """Send one event. Raises `OSError` if it is not accepted."""
        headers = {"Content-Type": "application/json", "User-Agent": f"millstream/{__version__}"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        body = json.dumps(event, default=str).encode()
        # Only http and https: `receiver_from_environment` refuses other schemes.
        request = urllib.request.Request(self.address, body, headers)  # noqa: S310
        with urllib.request.urlopen(request, timeout=TIMEOUT):  # noqa: S310
            return


def receiver_from_environment(settings: Mapping[str, str]) -> Receiver:
    """Return the receiver of OpenLineage's variables. Raises `ValueError` if its address is not HTTP."""
    url = settings["OPENLINEAGE_URL"].strip()
    if urlsplit(url).scheme not in ("http", "https"):
        raise ValueError("OPENLINEAGE_URL must begin with http:// or https://")
    path = settings.get("OPENLINEAGE_ENDPOINT", ENDPOINT).strip("/")
    return Receiver(f"{url.rstrip('/')}/{path}", settings.get("OPENLINEAGE_API_KEY") or None)


@dataclass
class _Started:
    """A running query since its last start."""

    run: str
    sources: list[str | None]
    sinks: list[str]
    reported_at: float
    rows: Counter[str] = field(default_factory=Counter)
    batches: int = 0


class Lineage:
    """Creates the events of one run of a pipeline: a parent job for the pipeline, and a job for each query."""

    name = "openlineage"

    def __init__(self, pipeline: Pipeline, run: str, to: Receiver, namespace: str = "default") -> None:
        self._pipeline = pipeline
        self._to = to
        self._namespace = namespace
        self._run = str(uuid.uuid5(uuid.NAMESPACE_URL, f"urn:millstream:{pipeline.name}/{run}"))
        self._columns: dict[str, dict[str, str]] = {}
        self._started: dict[str, _Started] = {}

    def convert(self, event: Event) -> list[Json]:
        """Convert an event of the run to lineage events."""
        match event.event:
            case "checked":
                self._columns = event.data.get("columns", {})
            case "run_started":
                return [self._of_pipeline("START", event.at)]
            case "run_stopped":
                # Queries that had not ended.
                aborted = [self._of_query("ABORT", name, event.at) for name in tuple(self._started)]
                kind = "FAIL" if event.data["exit_code"] else "COMPLETE"
                return [*aborted, self._of_pipeline(kind, event.at)]
            case "query_started":
                data = event.data
                run = _uuid(data.get("run_id"), event)
                self._started[event.query] = _Started(
                    run, list(data.get("sources") or ()), list(data.get("sinks") or ()), 0.0
                )
                return [self._of_query("START", event.query, event.at)]
            case "batch_written":
                if (started := self._started.get(event.query)) is not None:
                    started.rows[f"to {event.data['sink']}"] += event.data["rows"] or 0
            case "batch_committed":
                return self._batch(event)
            case "query_stopped":
                return self._ended("COMPLETE", event)
            case "query_failed" | "retry":
                return self._ended("FAIL", event)
        return []

    def send(self, messages: list[Json]) -> None:
        """Send events, one per request as specified. Raises `OSError` if one is not accepted."""
        while messages:
            self._to.post(messages[0])
            del messages[0]

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _batch(self, event: Event) -> list[Json]:
        started = self._started.get(event.query)
        if started is None:
            return []
        read = event.data["sources"]
        for name, source in zip(started.sources, read, strict=False):
            started.rows[f"from {name}"] += source.get("numInputRows") or 0
        started.batches += 1
        at = timestamps.parse(event.at)
        if started.batches > 1 and at - started.reported_at < EVERY:
            return []
        started.reported_at = at
        return [self._of_query("RUNNING", event.query, event.at)]

    def _ended(self, kind: str, event: Event) -> list[Json]:
        if event.query not in self._started:
            return []
        facets = {}
        if kind == "FAIL":
            error = {"message": event.data["reason"], "programmingLanguage": "PYTHON"}
            facets["errorMessage"] = {**_facet("1-0-1/ErrorMessageRunFacet"), **error}
        message = self._of_query(kind, event.query, event.at, facets)
        del self._started[event.query]
        return [message]

    def _of_pipeline(self, kind: str, at: str) -> Json:
        return self._event(kind, at, {"runId": self._run, "facets": {}}, self._pipeline.name, "PIPELINE")

    def _of_query(self, kind: str, query: str, at: str, facets: Mapping[str, Json] | None = None) -> Json:
        started = self._started[query]
        parent = {
            **_facet("1-2-0/ParentRunFacet"),
            "run": {"runId": self._run},
            "job": {"namespace": self._namespace, "name": self._pipeline.name},
        }
        run = {"runId": started.run, "facets": {"parent": parent, **(facets or {})}}
        message = self._event(kind, at, run, f"{self._pipeline.name}.{query}", "QUERY")
        message["inputs"] = [
            self._dataset(
                dataset, f"source.{name}", "inputFacets", "inputStatistics", started.rows[f"from {name}"]
            )
            for name in dict.fromkeys(filter(None, started.sources))
            if name in self._pipeline.sources
            for dataset in self._pipeline.sources[name].source.datasets()
        ]
        sinks = self._pipeline.queries[query].to
        message["outputs"] = [
            self._dataset(
                dataset,
                f"sink.{query}.{number}",
                "outputFacets",
                "outputStatistics",
                started.rows[f"to {key}"],
            )
            for number, (entry, key) in enumerate(zip(sinks, started.sinks, strict=False))
            for dataset in entry.sink.datasets()
        ]
        return message

    def _dataset(self, dataset: LineageDataset, node: str, facets: str, facet: str, rows: int) -> Json:
        message: Json = {"namespace": dataset.namespace, "name": dataset.name}
        if columns := self._columns.get(node):
            fields = [{"name": name, "type": kind} for name, kind in columns.items()]
            message["facets"] = {"schema": {**_facet("1-2-0/SchemaDatasetFacet"), "fields": fields}}
        version = "1-0-2/OutputStatisticsOutput" if facets == "outputFacets" else "1-0-0/InputStatisticsInput"
        message[facets] = {facet: {**_facet(f"{version}DatasetFacet"), "rowCount": rows}}
        return message

    def _event(self, kind: str, at: str, run: Json, job: str, kind_of_job: str) -> Json:
        job_type = {"processingType": "STREAMING", "integration": "MILLSTREAM", "jobType": kind_of_job}
        facets = {"jobType": {**_facet("2-0-4/JobTypeJobFacet"), **job_type}}
        return {
            "eventType": kind,
            "eventTime": at,
            "run": run,
            "job": {"namespace": self._namespace, "name": job, "facets": facets},
            "inputs": [],
            "outputs": [],
            "producer": PRODUCER,
            "schemaURL": SCHEMA,
        }


def _facet(facet: str) -> Json:
    """Return the fields that every facet begins with: producer and schema."""
    return {
        "_producer": PRODUCER,
        "_schemaURL": f"{SPEC}/facets/{facet}.json#/$defs/{facet.partition('/')[2]}",
    }


def _uuid(run_id: object, event: Event) -> str:
    """Return Spark's run id if it is a UUID, else a UUID of query and time."""
    try:
        return str(uuid.UUID(str(run_id)))
    except ValueError:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{event.query} {event.at}"))
