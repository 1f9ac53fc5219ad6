"""The model of `traffic.yml`: which events are generated, and how they are delayed, repeated or damaged."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

import yaml
from pydantic import Field, ValidationError, model_validator

from millstream.connectors.api.values.problem import RequiredResource
from millstream.devstack.traffic.fields import FieldSpec
from millstream.diagnostics.failure import InvalidInput
from millstream.spec.base import Spec
from millstream.spec.duration import Duration

if TYPE_CHECKING:
    from pathlib import Path

FILE = "traffic.yml"


class Damage(StrEnum):
    """Ways in which a record is malformed."""

    TRUNCATED = "truncated"
    """Truncated JSON."""
    WRONG_TYPE = "wrong_type"
    """A word in place of a number or a time."""
    NOT_UTF8 = "not_utf8"
    """Bytes that are not text."""
    EMPTY = "empty"
    """An empty value, which is not the same as null."""
    PLAIN_TEXT = "plain_text"
    """Text that is not JSON."""


class Layout(StrEnum):
    """The encoding of a record's fields."""

    JSON = "json"
    CSV = "csv"
    """A line without field names: texts in quotes, numbers without."""


class Bursts(Spec):
    """Recurring periods with a higher rate."""

    every: Duration
    """Time from the start of one burst to the start of the next; the first begins immediately."""
    for_: Duration = Field(alias="for")
    """The duration of a burst."""
    times: float = Field(default=5.0, gt=0)
    """Factor by which the rate is multiplied."""


class LateEvents(Spec):
    """Events that arrive later than a watermark should wait for."""

    share: float = Field(ge=0, le=1)
    """Fraction of all events."""
    by: tuple[Duration, Duration] = (Duration("30 minutes"), Duration("1 hour"))
    """Shortest and longest delay. Choose more than watermark and window together, or some rows still count."""


class Duplicates(Spec):
    """Good records that are delivered twice, byte for byte."""

    share: float = Field(ge=0, le=1)
    """Fraction of good records that are delivered twice."""
    within: Duration = Duration("20 seconds")
    """Longest time between the first and the second delivery."""


class MalformedRecords(Spec):
    """Malformed records that replace good ones."""

    share: float = Field(ge=0, le=1)
    """Fraction of all events."""
    kinds: tuple[Damage, ...] = Field(default=tuple(Damage), min_length=1)
    """The kinds of damage, each equally likely."""


class FollowingEvents(Spec):
    """Events caused by events of another stream, such as a purchase that follows a cart."""

    stream: str
    """The other stream."""
    share: float = Field(gt=0, le=1)
    """Fraction of the other stream's events that are followed by one of this stream."""
    after: tuple[Duration, Duration]
    """Shortest and longest delay after it, both in event time and in processing time."""


class Stream(Spec):
    """The events of one topic."""

    topic: str | None = None
    """The topic to send to; defaults to the stream's name."""
    rate: float | None = Field(default=None, gt=0)
    """Events per second. A stream that follows another has no rate, because it depends on the other's."""
    follows: FollowingEvents | None = None
    """The stream whose events cause these."""
    bursts: Bursts | None = None
    """Periods with a higher rate."""
    key: str | None = None
    """The field used as the record's key; without a key, records go to the partitions in turn."""
    id: str | None = None
    """The field that identifies the event in a journal; defaults to the first uuid or sequence."""
    fields: dict[str, FieldSpec] = Field(min_length=1)
    """The fields of a record, in their order."""
    format: Layout = Layout.JSON
    """The encoding of a record's value: a JSON object, or a line of CSV."""
    disorder: Duration | None = None
    """Longest delay of an event; most delays are much shorter. Choose less than the watermark."""
    late: LateEvents | None = None
    """Events that arrive too late."""
    duplicates: Duplicates | None = None
    """Records that are delivered twice."""
    malformed: MalformedRecords | None = None
    """Records that cannot be decoded."""
    partitions: int | None = Field(default=None, ge=1)
    """Number of partitions if `up` creates the topic for this file."""

    @model_validator(mode="after")
    def _check_consistency(self) -> Stream:
        if (self.rate is None) == (self.follows is None):
            raise ValueError("a stream needs either 'rate' or 'follows', not both")
        if self.follows and (self.disorder or self.late or self.bursts):
            raise ValueError("a stream that follows another inherits disorder, late and bursts from it")
        for name in (self.key, self.id):
            if name is not None and name not in self.fields:
                raise ValueError(f"there is no field '{name}'")
        if self.format is Layout.CSV and len(self.fields) == 1:
            raise ValueError(
                "a line of CSV needs two fields: with a single field, a truncated line would look complete"
            )
        for name, field in self.fields.items():
            if field.same and not self.follows:
                raise ValueError(f"field '{name}' is 'same', but the stream follows no other")
            if field.session and field.session.of not in list(self.fields)[: list(self.fields).index(name)]:
                raise ValueError(f"field '{name}' needs a field '{field.session.of}' above it")
        return self

    @property
    def identifier(self) -> str | None:
        """The field that identifies the event."""
        id_fields = (name for name, field in self.fields.items() if field.uuid or field.sequence)
        return self.id or next(id_fields, None)


class Traffic(Spec):
    """The contents of `traffic.yml`."""

    seed: int = 1
    """Seed of the random generator: the same seed and start produce the same bytes in the same order."""
    start: datetime | None = None
    """Event time of the first event, with a time zone; defaults to the current time."""
    streams: dict[str, Stream] = Field(min_length=1)
    """The streams by name; a stream must come after the one that it follows."""

    @model_validator(mode="after")
    def _check_references(self) -> Traffic:
        above: dict[str, Stream] = {}
        for name, stream in self.streams.items():
            if stream.follows and stream.follows.stream not in above:
                raise ValueError(f"'{name}' follows '{stream.follows.stream}', which is not defined above it")
            for field, generator in stream.fields.items():
                parent_fields = above[stream.follows.stream].fields if stream.follows else {}
                if generator.same and generator.same not in parent_fields:
                    raise ValueError(
                        f"'{name}.{field}' is the same as '{generator.same}', which is not a field there"
                    )
                other = above.get(generator.recent.stream) if generator.recent else None
                if generator.recent and (other is None or generator.recent.field not in other.fields):
                    reference = f"{generator.recent.stream}.{generator.recent.field}"
                    raise ValueError(
                        f"'{name}.{field}' refers to '{reference}', which is not defined above it"
                    )
            above[name] = stream
        if self.start is not None and self.start.tzinfo is None:
            raise ValueError("start needs a time zone, such as Z")
        return self

    def topic(self, stream: str) -> str:
        """Return the topic of a stream's records."""
        return self.streams[stream].topic or stream

    def rates(self) -> dict[str, float]:
        """Return the records per second by stream, including duplicates but not bursts."""
        base_rates: dict[str, float] = {}
        for name, stream in self.streams.items():
            base_rates[name] = stream.rate or (
                base_rates[stream.follows.stream] * stream.follows.share if stream.follows else 0
            )
        return {
            name: rate * (1 + (duplicates.share if (duplicates := self.streams[name].duplicates) else 0))
            for name, rate in base_rates.items()
        }

    def needs(self) -> list[RequiredResource]:
        """Return the required topics."""
        return [
            RequiredResource(
                "kafka",
                "topic",
                self.topic(name),
                {"partitions": str(stream.partitions)} if stream.partitions else {},
            )
            for name, stream in self.streams.items()
        ]

    def at_rate(self, total: float) -> Traffic:
        """Return the traffic scaled so that streams that follow no other send `total` events per second together."""
        factor = total / sum(stream.rate or 0 for stream in self.streams.values())
        streams = {
            name: stream.model_copy(update={"rate": stream.rate * factor}) if stream.rate else stream
            for name, stream in self.streams.items()
        }
        return self.model_copy(update={"streams": streams})


def read_traffic(path: Path) -> Traffic:
    """Read the traffic that a file declares. Raises WrongUse with all errors of the file."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be read: {error.strerror}", "pass another file with --traffic"
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        details = " ".join(str(error).split())
        raise InvalidInput(f"{path.name} is not YAML: {details}", "correct the file") from error
    try:
        return Traffic.model_validate(data)
    except ValidationError as error:
        messages = [
            f"{'.'.join(map(str, item['loc'])) or 'the file'}: {item['msg'].removeprefix('Value error, ')}"
            for item in error.errors()
        ]
        raise InvalidInput(f"{path.name} is not valid: {'; '.join(messages)}", "correct the file") from error
