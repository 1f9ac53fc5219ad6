"""Make the values of one stream's records, quickly: every choice that can be made once is made once."""

from __future__ import annotations

import itertools
import json
import time
from bisect import bisect
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from millstream.devstack.traffic_model import Damage, Layout, Stream

if TYPE_CHECKING:
    import random

    from millstream.devstack.traffic_fields import FieldSpec, Skewed

Values = list[str]
# A generator is given the values so far, the event time in milliseconds, the values of the event followed.
Make = Callable[[Values, int, Values], str]
_SECOND_MEMORY = 100_000
QUOTED = '"%s"'


class Maker:
    """Values, key and bytes of the records of one stream."""

    def __init__(self, name: str, stream: Stream, chance: random.Random, makers: dict[str, Maker]) -> None:
        self.name = name
        self.stream = stream
        self.chance = chance
        self.fields = list(stream.fields)
        self.memories: dict[int, deque[str]] = {}
        parent = makers[stream.follows.stream].fields if stream.follows else []
        self._makes = [_make(field, self.fields, parent, chance, makers) for field in stream.fields.values()]
        self.bare = [self._stands_bare(spec, makers) for spec in stream.fields.values()]
        pieces = ["%s" if bare else QUOTED for bare in self.bare]
        # What is cut short within it is no record any more: of JSON all, of CSV all but the last field, since a line
        # of which a part of that is left may still be read.
        self._whole = stream.format is Layout.JSON
        if self._whole:
            pieces = [
                f"{json.dumps(field).replace('%', '%%')}:{piece}"
                for field, piece in zip(self.fields, pieces, strict=True)
            ]
            self._template = "{" + ",".join(pieces) + "}"
        else:
            self._template = ",".join(pieces)
        self._head = ",".join(pieces[:-1])
        self.key = None if stream.key is None else self.fields.index(stream.key)
        self.id = None if stream.identifier is None else self.fields.index(stream.identifier)
        # A number if there is one: a word in its place is wrong in every reading of the schema.
        numbers = [place for place, bare in enumerate(self.bare) if bare]
        times = [place for place, spec in enumerate(stream.fields.values()) if spec.event_time]
        self._typed = next(iter(numbers or times), None)
        self._wrong = '"three"' if numbers else "not a time"

    def values(self, event_ms: int, parent: Values) -> Values:
        """The values of one event, in the order of the fields."""
        made: Values = []
        for make in self._makes:
            made.append(make(made, event_ms, parent))
        for place, memory in self.memories.items():
            memory.append(made[place])
        return made

    def encoded(self, values: Values) -> bytes:
        """The record as JSON, or as a line of CSV."""
        return (self._template % tuple(values)).encode()

    def damaged(self, values: Values, damage: Damage) -> bytes:
        """The record as it must not be."""
        match damage:
            case Damage.EMPTY:
                return b""
            case Damage.PLAIN_TEXT:
                return b"upstream connect error or disconnect before headers"
            case Damage.NOT_UTF8:
                # None of these bytes may begin a character, whatever follows.
                return b"\xff\xfe" + self.chance.randbytes(14).translate(_HIGH) + b"\xff"
            case Damage.WRONG_TYPE if self._typed is not None:
                wrong = list(values)
                wrong[self._typed] = self._wrong
                return self.encoded(wrong)
            case _ if not self._whole:
                head = (self._head % tuple(values[:-1])).encode()
                return head[: self.chance.randrange(1, len(head) + 1)]
            case _:
                whole = self.encoded(values)
                return whole[: self.chance.randrange(len(whole) // 4 + 1, len(whole) - 1)]

    def remember(self, field: str, last: int) -> deque[str]:
        """The latest values of a field, kept from here on for another stream."""
        place = self.fields.index(field)
        kept = self.memories.setdefault(place, deque(maxlen=last))
        if kept.maxlen is not None and kept.maxlen < last:
            kept = self.memories[place] = deque(kept, maxlen=last)
        return kept

    def _stands_bare(self, field: FieldSpec, makers: dict[str, Maker]) -> bool:
        """Does the field's value stand in JSON without quotes? A value taken over does as its origin does."""
        if field.same is not None and self.stream.follows:
            origin = makers[self.stream.follows.stream]
            return origin.bare[origin.fields.index(field.same)]
        if field.recent:
            other = makers[field.recent.stream]
            return other.bare[other.fields.index(field.recent.field)]
        return field.numeric


# Every byte with its highest bit set.
_HIGH = bytes(value | 0x80 for value in range(256))


def _make(
    field: FieldSpec,
    fields: list[str],
    parent: list[str],
    chance: random.Random,
    makers: dict[str, Maker],
) -> Make:
    """The generator of one field."""
    if field.uuid:
        return lambda _made, _ms, _parent: _uuid(chance.getrandbits(128))
    if field.event_time:
        return lambda _made, ms, _parent: iso(ms)
    if field.same is not None:
        place = parent.index(field.same)
        return lambda _made, _ms, parent: parent[place]
    if field.sequence:
        count, form = (
            itertools.count(1),
            f"{field.sequence.prefix.replace('%', '%%')}%0{field.sequence.digits}d",
        )
        return lambda _made, _ms, _parent: form % next(count)
    if field.skewed:
        return _pick(_names(field.skewed), _zipf(field.skewed), chance)
    if field.choice:
        return _pick(list(field.choice), list(itertools.accumulate(field.choice.values())), chance)
    if field.int_:
        low, width = int(field.int_.low), int(field.int_.high) - int(field.int_.low) + 1
        return lambda _made, _ms, _parent: str(low + int(chance.random() * width))
    if field.float_:
        least, span, form = (
            field.float_.low,
            field.float_.high - field.float_.low,
            f"%.{field.float_.digits}f",
        )
        return lambda _made, _ms, _parent: form % (least + chance.random() * span)
    if field.session:
        return _session(fields.index(field.session.of), field.session.idle.micros // 1000)
    if field.recent:
        memory = makers[field.recent.stream].remember(field.recent.field, field.recent.last)
        return lambda _made, _ms, _parent: memory[int(chance.random() * len(memory))] if memory else ""
    value = field.constant
    text = json.dumps(value) if field.numeric else json.dumps(str(value))[1:-1]
    return lambda _made, _ms, _parent: text


def _pick(names: list[str], weights: list[float], chance: random.Random) -> Make:
    total, last = weights[-1], len(names) - 1
    return lambda _made, _ms, _parent: names[bisect(weights, chance.random() * total, 0, last)]


def _names(skewed: Skewed) -> list[str]:
    return [f"{skewed.prefix}{number:0{skewed.digits}d}" for number in range(1, skewed.count + 1)]


def _zipf(skewed: Skewed) -> list[float]:
    return list(itertools.accumulate(rank**-skewed.exponent for rank in range(1, skewed.count + 1)))


def _session(owner: int, idle_ms: int) -> Make:
    open_: dict[str, tuple[int, int]] = {}

    def make(made: Values, ms: int, _parent: Values) -> str:
        who = made[owner]
        number, until = open_.get(who, (0, -1))
        if ms > until:
            number += 1
        open_[who] = (number, max(until, ms + idle_ms))
        return f"{who}-s{number}"

    return make


def _uuid(bits: int) -> str:
    text = f"{bits:032x}"
    # Version 4, variant 1: what a UUID must say of itself.
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"


_seconds: dict[int, str] = {}


def iso(ms: int) -> str:
    """A time in milliseconds since 1970 as ISO-8601 in UTC."""
    second, rest = divmod(ms, 1000)
    text = _seconds.get(second)
    if text is None:
        if len(_seconds) > _SECOND_MEMORY:
            _seconds.clear()
        text = _seconds[second] = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
    return f"{text}.{rest:03d}Z"
