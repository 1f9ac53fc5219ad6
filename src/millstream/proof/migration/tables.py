"""The tables of one side of a proof: each path, table or topic that it writes is a folder here."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession

from millstream.connectors import spark_formats
from millstream.spark import internals

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class ProofTables:
    """Tables in a folder, by the place that the code names, and which query wrote them."""

    folder: Path
    formats: dict[str, str] = field(default_factory=dict)
    """The format of each table, by its place."""
    written: dict[int, list[str]] = field(default_factory=dict)
    """Places that each query wrote, by its number."""

    def path(self, place: str) -> str:
        """Return the folder of a place."""
        key = _key(place)
        digest = hashlib.sha256(key.encode()).hexdigest()[:8]
        return str(self.folder / f"{re.sub(r'[^A-Za-z0-9]+', '_', key)[-40:]}-{digest}")

    def has(self, place: str) -> bool:
        """Return whether a table was written."""
        return _key(place) in self.formats

    def write(self, frame: DataFrame, place: str, form: str, mode: str, query: int) -> None:
        """Write a frame. Every format but Delta is Parquet here."""
        form = spark_formats.DELTA if form == spark_formats.DELTA else spark_formats.DEFAULT
        form = self.formats.setdefault(_key(place), form)
        writer = internals.java_frame(frame).write().format(form).mode(mode)
        writer.option("mergeSchema", "true").save(self.path(place))
        self.note(place, query)

    def note(self, place: str, query: int, form: str = "") -> None:
        """Record that a query writes a place."""
        if form:
            self.formats.setdefault(_key(place), form)
        places = self.written.setdefault(query, [])
        if _key(place) not in places:
            places.append(_key(place))

    def read(self, spark: SparkSession, place: str, *, streaming: bool = False) -> DataFrame | None:
        """Return a table; None if no query has written it."""
        form = self.formats.get(_key(place))
        if form is None:
            return None
        session = internals.java_session(spark)
        path = self.path(place)
        if not streaming:
            return DataFrame(session.read().format(form).load(path), spark)
        reader = session.readStream().format(form)
        if form != spark_formats.DELTA:
            reader = reader.schema(session.read().format(form).load(path).schema())
        return DataFrame(reader.load(path), spark)


def _key(place: str) -> str:
    return place.replace("`", "").removeprefix("file://").rstrip("/")
