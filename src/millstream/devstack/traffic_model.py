"""The model of `traffic.yml`: which events are made up, and what goes wrong with them on the way."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

import yaml
from pydantic import Field, ValidationError, model_validator

from millstream.connectors.source import Need
from millstream.devstack.traffic_fields import FieldSpec
from millstream.diagnostics.failure import WrongUse
from millstream.spec.base import Spec
from millstream.spec.duration import Duration

if TYPE_CHECKING:
    from pathlib import Path

FILE = "traffic.yml"


class Damage(StrEnum):
    """What makes a record malformed."""

    TRUNCATED = "truncated"
    """JSON that breaks off."""
    WRONG_TYPE = "wrong_type"
    """A word where a number or a time belongs."""
    NOT_UTF8 = "not_utf8"
    """Bytes that are no text."""
    EMPTY = "empty"
    """No bytes at all, which is not the same as null."""
    PLAIN_TEXT = "plain_text"
    """Text that is not JSON."""


class Layout(StrEnum):
    """How the fields of a record stand in its bytes."""

    JSON = "json"
    CSV = "csv"
    """A line without names: texts in quotes, numbers bare."""


class Bursts(Spec):
    """Times of a higher rate that come again and again."""

    every: Duration
    """From the begin of one burst to the begin of the next; the first begins at the start."""
    for_: Duration = Field(alias="for")
    """How long one lasts."""
    times: float = Field(default=5.0, gt=0)
    """The rate is multiplied by this."""


class Late(Spec):
    """Events that come later than any watermark should wait for."""

    share: float = Field(ge=0, le=1)
    """The part of all events."""
    by: tuple[Duration, Duration] = (Duration("30 minutes"), Duration("1 hour"))
    """How late, from and to. Choose more than watermark and window together, or some still count."""


class Duplicates(Spec):
    """Good records that are delivered a second time, byte for byte."""

    share: float = Field(ge=0, le=1)
    """The part of good records that come twice."""
    within: Duration = Duration("20 seconds")
    """The second comes no later than this after the first."""


class Malformed(Spec):
    """Records that cannot be read, in place of the good one."""

    share: float = Field(ge=0, le=1)
    """The part of all events."""
    kinds: tuple[Damage, ...] = Field(default=tuple(Damage), min_length=1)
    """What may be wrong with one, each equally likely."""


class Follows(Spec):
    """Events that come from events of another stream: a purchase from a cart."""

    stream: str
    """The other stream."""
    share: float = Field(gt=0, le=1)
    """The part of its events that one of this stream follows."""
    after: tuple[Duration, Duration]
    """How long after it, from and to, in event time as on the clock."""


class Stream(Spec):
    """One topic's events."""

    topic: str | None = None
    """Where they go; the stream's own name unless given."""
    rate: float | None = Field(default=None, gt=0)
    """Events a second. A stream that follows another has none: its rate comes from there."""
    follows: Follows | None = None
    """The stream whose events these come from."""
    bursts: Bursts | None = None
    """Times of a higher rate."""
    key: str | None = None
    """The field that is the record's key; without one, records go to the partitions in turn."""
    id: str | None = None
    """The field that names the event in a journal; the first uuid or sequence unless given."""
    fields: dict[str, FieldSpec] = Field(min_length=1)
    """The fields of a record, in the order in which they stand in it."""
    format: Layout = Layout.JSON
    """How a record's value is written: as a JSON object, or as a line of CSV."""
    disorder: Duration | None = None
    """Events arrive up to this long after they happened, most much sooner. Stay below the watermark."""
    late: Late | None = None
    """Events that come too late."""
    duplicates: Duplicates | None = None
    """Records delivered twice."""
    malformed: Malformed | None = None
    """Records that cannot be read."""
    partitions: int | None = Field(default=None, ge=1)
    """How many partitions `up` gives the topic when it makes it for this file."""

    @model_validator(mode="after")
    def _sound(self) -> Stream:
        if (self.rate is None) == (self.follows is None):
            raise ValueError("a stream has either a rate or a stream that it follows")
        if self.follows and (self.disorder or self.late or self.bursts):
            raise ValueError("a stream that follows another takes disorder, lateness and bursts from it")
        for name in (self.key, self.id):
            if name is not None and name not in self.fields:
                raise ValueError(f"there is no field '{name}'")
        if self.format is Layout.CSV and len(self.fields) == 1:
            raise ValueError(
                "a line of CSV needs two fields: cut short, one with a single field would pass for whole"
            )
        for name, field in self.fields.items():
            if field.same and not self.follows:
                raise ValueError(f"field '{name}' is 'same', but the stream follows no other")
            if field.session and field.session.of not in list(self.fields)[: list(self.fields).index(name)]:
                raise ValueError(f"field '{name}' needs a field '{field.session.of}' above it")
        return self

    @property
    def identifier(self) -> str | None:
        """The field that names the event."""
        made = (name for name, field in self.fields.items() if field.uuid or field.sequence)
        return self.id or next(made, None)


class Traffic(Spec):
    """All of `traffic.yml`."""

    seed: int = 1
    """The same seed and start give the same bytes in the same order."""
    start: datetime | None = None
    """Event time of the first event, with a zone; the clock's time unless given."""
    streams: dict[str, Stream] = Field(min_length=1)
    """The streams by name; one that follows another stands below it."""

    @model_validator(mode="after")
    def _linked(self) -> Traffic:
        above: dict[str, Stream] = {}
        for name, stream in self.streams.items():
            if stream.follows and stream.follows.stream not in above:
                raise ValueError(f"'{name}' follows '{stream.follows.stream}', which does not stand above it")
            for field, made in stream.fields.items():
                seen = above[stream.follows.stream].fields if stream.follows else {}
                if made.same and made.same not in seen:
                    raise ValueError(
                        f"'{name}.{field}' is the same as '{made.same}', which is no field there"
                    )
                other = above.get(made.recent.stream) if made.recent else None
                if made.recent and (other is None or made.recent.field not in other.fields):
                    place = f"{made.recent.stream}.{made.recent.field}"
                    raise ValueError(f"'{name}.{field}' refers to '{place}', which does not stand above it")
            above[name] = stream
        if self.start is not None and self.start.tzinfo is None:
            raise ValueError("start needs a zone, such as Z")
        return self

    def topic(self, stream: str) -> str:
        """Where a stream's records go."""
        return self.streams[stream].topic or stream

    def rates(self) -> dict[str, float]:
        """Records a second by stream, duplicates included, bursts not."""
        bare: dict[str, float] = {}
        for name, stream in self.streams.items():
            bare[name] = stream.rate or (
                bare[stream.follows.stream] * stream.follows.share if stream.follows else 0
            )
        return {
            name: rate * (1 + (found.share if (found := self.streams[name].duplicates) else 0))
            for name, rate in bare.items()
        }

    def needs(self) -> list[Need]:
        """The topics."""
        return [
            Need(
                "kafka",
                "topic",
                self.topic(name),
                {"partitions": str(stream.partitions)} if stream.partitions else {},
            )
            for name, stream in self.streams.items()
        ]

    def at_rate(self, total: float) -> Traffic:
        """The same traffic with the streams that follow no other sending `total` events a second together."""
        factor = total / sum(stream.rate or 0 for stream in self.streams.values())
        streams = {
            name: stream.model_copy(update={"rate": stream.rate * factor}) if stream.rate else stream
            for name, stream in self.streams.items()
        }
        return self.model_copy(update={"streams": streams})


def read(path: Path) -> Traffic:
    """The traffic that a file declares. Raises WrongUse, which names each thing that is wrong with it."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as failed:
        raise WrongUse(f"{path} cannot be read: {failed.strerror}", "name another with --traffic") from failed
    except (yaml.YAMLError, UnicodeDecodeError) as failed:
        where = " ".join(str(failed).split())
        raise WrongUse(f"{path.name} is not YAML: {where}", "correct the file") from failed
    try:
        return Traffic.model_validate(data)
    except ValidationError as failed:
        wrong = [
            f"{'.'.join(map(str, one['loc'])) or 'the file'}: {one['msg'].removeprefix('Value error, ')}"
            for one in failed.errors()
        ]
        raise WrongUse(f"{path.name} is not valid: {'; '.join(wrong)}", "correct the file") from failed
