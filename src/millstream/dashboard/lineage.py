"""Runs of queries as OpenLineage events: plain JSON over HTTP, as its specification 2-0-2 has it.

The client library would bring four packages for one POST; what is sent is held against the specification by a test.
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
from millstream.dashboard import moments

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.connectors.dataset import Dataset
    from millstream.pipeline.model import Pipeline
    from millstream.runtime.events import Event

SPEC = "https://openlineage.io/spec"
SCHEMA = f"{SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
PRODUCER = f"urn:millstream:{__version__}"
ENDPOINT = "api/v1/lineage"
# A receiver that has not answered by then is away.
TIMEOUT = 5.0
# A query that runs is told of after its first batch, and then at most once in so many seconds.
EVERY = 60.0
Json = dict[str, Any]


@dataclass(frozen=True)
class Receiver:
    """Where events go. The key is a secret: it is sent, and told nowhere."""

    address: str
    key: str | None = field(default=None, repr=False)

    def post(self, event: Json) -> None:
        """Send one event. Raises `OSError` where it is not taken."""
        headers = {"Content-Type": "application/json", "User-Agent": f"millstream/{__version__}"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        body = json.dumps(event, default=str).encode()
        # Only http and https come here: `receiver` refuses others.
        request = urllib.request.Request(self.address, body, headers)  # noqa: S310
        with urllib.request.urlopen(request, timeout=TIMEOUT):  # noqa: S310
            return


def receiver(settings: Mapping[str, str]) -> Receiver:
    """The receiver that OpenLineage's variables name. Raises `ValueError` for an address that is not of HTTP."""
    url = settings["OPENLINEAGE_URL"].strip()
    if urlsplit(url).scheme not in ("http", "https"):
        raise ValueError("OPENLINEAGE_URL begins with http:// or https://")
    path = settings.get("OPENLINEAGE_ENDPOINT", ENDPOINT).strip("/")
    return Receiver(f"{url.rstrip('/')}/{path}", settings.get("OPENLINEAGE_API_KEY") or None)


@dataclass
class _Started:
    """A start of a query that has not ended."""

    run: str
    sources: list[str | None]
    sinks: list[str]
    told: float
    rows: Counter[str] = field(default_factory=Counter)
    batches: int = 0


class Lineage:
    """Makes the events of one run of a pipeline: one job for it, and one below it for each query."""

    name = "openlineage"

    def __init__(self, pipeline: Pipeline, run: str, to: Receiver, namespace: str = "default") -> None:
        self._pipeline = pipeline
        self._to = to
        self._namespace = namespace
        self._run = str(uuid.uuid5(uuid.NAMESPACE_URL, f"urn:millstream:{pipeline.name}/{run}"))
        self._columns: dict[str, dict[str, str]] = {}
        self._started: dict[str, _Started] = {}

    def told(self, event: Event) -> list[Json]:
        """The lineage events that an event of the run makes."""
        match event.event:
            case "checked":
                self._columns = event.data.get("columns", {})
            case "run_started":
                return [self._of_pipeline("START", event.at)]
            case "run_stopped":
                # Queries that were not waited for.
                left = [self._of_query("ABORT", name, event.at) for name in tuple(self._started)]
                kind = "FAIL" if event.data["exit_code"] else "COMPLETE"
                return [*left, self._of_pipeline(kind, event.at)]
            case "query_started":
                told = event.data
                run = _uuid(told.get("run_id"), event)
                self._started[event.query] = _Started(
                    run, list(told.get("sources") or ()), list(told.get("sinks") or ()), 0.0
                )
                return [self._of_query("START", event.query, event.at)]
            case "batch_written":
                if (one := self._started.get(event.query)) is not None:
                    one.rows[f"to {event.data['sink']}"] += event.data["rows"] or 0
            case "batch_committed":
                return self._batch(event)
            case "query_stopped":
                return self._ended("COMPLETE", event)
            case "query_failed" | "retry":
                return self._ended("FAIL", event)
        return []

    def send(self, messages: list[Json]) -> None:
        """Send events, one a request, as the specification has it. Raises `OSError` where one is not taken."""
        while messages:
            self._to.post(messages[0])
            del messages[0]

    def close(self) -> None:
        """Nothing is held."""

    def _batch(self, event: Event) -> list[Json]:
        one = self._started.get(event.query)
        if one is None:
            return []
        read = event.data["sources"]
        for name, source in zip(one.sources, read, strict=False):
            one.rows[f"from {name}"] += source.get("numInputRows") or 0
        one.batches += 1
        at = moments.seconds(event.at)
        if one.batches > 1 and at - one.told < EVERY:
            return []
        one.told = at
        return [self._of_query("RUNNING", event.query, event.at)]

    def _ended(self, kind: str, event: Event) -> list[Json]:
        if event.query not in self._started:
            return []
        facets = {}
        if kind == "FAIL":
            told = {"message": event.data["reason"], "programmingLanguage": "PYTHON"}
            facets["errorMessage"] = {**_facet("1-0-1/ErrorMessageRunFacet"), **told}
        made = self._of_query(kind, event.query, event.at, facets)
        del self._started[event.query]
        return [made]

    def _of_pipeline(self, kind: str, at: str) -> Json:
        return self._event(kind, at, {"runId": self._run, "facets": {}}, self._pipeline.name, "PIPELINE")

    def _of_query(self, kind: str, query: str, at: str, facets: Mapping[str, Json] | None = None) -> Json:
        one = self._started[query]
        parent = {
            **_facet("1-2-0/ParentRunFacet"),
            "run": {"runId": self._run},
            "job": {"namespace": self._namespace, "name": self._pipeline.name},
        }
        run = {"runId": one.run, "facets": {"parent": parent, **(facets or {})}}
        made = self._event(kind, at, run, f"{self._pipeline.name}.{query}", "QUERY")
        made["inputs"] = [
            self._dataset(found, f"source.{name}", "inputFacets", "inputStatistics", one.rows[f"from {name}"])
            for name in dict.fromkeys(filter(None, one.sources))
            if name in self._pipeline.sources
            for found in self._pipeline.sources[name].source.datasets()
        ]
        to = self._pipeline.queries[query].to
        made["outputs"] = [
            self._dataset(
                found, f"sink.{query}.{number}", "outputFacets", "outputStatistics", one.rows[f"to {key}"]
            )
            for number, (entry, key) in enumerate(zip(to, one.sinks, strict=False))
            for found in entry.sink.datasets()
        ]
        return made

    def _dataset(self, found: Dataset, node: str, where: str, what: str, rows: int) -> Json:
        made: Json = {"namespace": found.namespace, "name": found.name}
        if columns := self._columns.get(node):
            fields = [{"name": name, "type": kind} for name, kind in columns.items()]
            made["facets"] = {"schema": {**_facet("1-2-0/SchemaDatasetFacet"), "fields": fields}}
        version = "1-0-2/OutputStatisticsOutput" if where == "outputFacets" else "1-0-0/InputStatisticsInput"
        made[where] = {what: {**_facet(f"{version}DatasetFacet"), "rowCount": rows}}
        return made

    def _event(self, kind: str, at: str, run: Json, job: str, what: str) -> Json:
        told = {"processingType": "STREAMING", "integration": "MILLSTREAM", "jobType": what}
        facets = {"jobType": {**_facet("2-0-4/JobTypeJobFacet"), **told}}
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


def _facet(which: str) -> Json:
    """What every facet begins with: who made it, by which schema."""
    return {
        "_producer": PRODUCER,
        "_schemaURL": f"{SPEC}/facets/{which}.json#/$defs/{which.partition('/')[2]}",
    }


def _uuid(told: object, event: Event) -> str:
    """Spark's id of the start, which is a UUID; one made of what is known where it is none."""
    try:
        return str(uuid.UUID(str(told)))
    except ValueError:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{event.query} {event.at}"))
