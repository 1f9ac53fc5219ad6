"""Generate the values of a stream's records quickly: everything that is constant is computed only once."""

from __future__ import annotations

import itertools
import json
import time
from bisect import bisect
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from millstream.devstack.traffic.model import Damage, Layout, Stream

if TYPE_CHECKING:
    import random

    from millstream.devstack.traffic.fields import FieldSpec, Recent, SkewedKeys

Values = list[str]
# A generator receives the values so far, the event time in milliseconds, and the values of the followed event.
Make = Callable[[Values, int, Values], str]
_SECOND_MEMORY = 100_000
QUOTED = '"%s"'


class RecordGenerator:
    """Generates values, keys and bytes of the records of one stream."""

    def __init__(
        self, name: str, stream: Stream, chance: random.Random, makers: dict[str, RecordGenerator]
    ) -> None:
        self.name = name
        self.stream = stream
        self.chance = chance
        self.fields = list(stream.fields)
        self.memories: dict[tuple[int, int], deque[str]] = {}
        parent = makers[stream.follows.stream].fields if stream.follows else []
        self.bare = [self._is_unquoted(spec, makers) for spec in stream.fields.values()]
        self._is_json = stream.format is Layout.JSON
        self._makers = [
            self._choose_recent(field.recent, makers[field.recent.stream], is_unquoted=is_unquoted)
            if field.recent
            else _make(field, self.fields, parent, chance)
            for field, is_unquoted in zip(stream.fields.values(), self.bare, strict=True)
        ]
        pieces = ["%s" if bare else QUOTED for bare in self.bare]
        # A record truncated inside this part is always malformed. For JSON it is the whole record; for CSV all but
        # the last field, because a line whose last field is truncated may still be valid.
        if self._is_json:
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
        # Prefer a number, because a word in its place is wrong under every schema.
        numbers = [place for place, bare in enumerate(self.bare) if bare]
        times = [place for place, spec in enumerate(stream.fields.values()) if spec.event_time]
        self._typed = next(iter(numbers or times), None)
        self._wrong_value = '"three"' if numbers else "not a time"

    def values(self, event_ms: int, parent: Values) -> Values:
        """Generate the values of one event, in the order of the fields."""
        result: Values = []
        for make in self._makers:
            result.append(make(result, event_ms, parent))
        for (place, _), memory in self.memories.items():
            memory.append(result[place])
        return result

    def encoded(self, values: Values) -> bytes:
        """Encode a record as JSON or as a line of CSV."""
        return (self._template % tuple(values)).encode()

    def encode_damaged(self, values: Values, damage: Damage) -> bytes:
        """Encode a record with damage."""
        match damage:
            case Damage.EMPTY:
                return b""
            case Damage.PLAIN_TEXT:
                return b"upstream connect error or disconnect before headers"
            case Damage.NOT_UTF8:
                # None of these bytes can begin a character, regardless of the next byte.
                return b"\xff\xfe" + self.chance.randbytes(14).translate(_HIGH) + b"\xff"
            case Damage.WRONG_TYPE if self._typed is not None:
                damaged_values = list(values)
                damaged_values[self._typed] = self._wrong_value
                return self.encoded(damaged_values)
            case _ if not self._is_json:
                head = (self._head % tuple(values[:-1])).encode()
                return head[: self.chance.randrange(1, len(head) + 1)]
            case _:
                encoded = self.encoded(values)
                return encoded[: self.chance.randrange(len(encoded) // 4 + 1, len(encoded) - 1)]

    def remember(self, field: str, last: int) -> deque[str]:
        """Return the latest values of a field, which are recorded from now on for another stream."""
        return self.memories.setdefault((self.fields.index(field), last), deque(maxlen=last))

    def _choose_recent(self, recent: Recent, other: RecordGenerator, *, is_unquoted: bool) -> Make:
        """Return the generator of a field with recent values of another stream, which has none at first."""
        memory, chance = other.remember(recent.field, recent.last), self.chance
        missing = "null" if is_unquoted and self._is_json else ""
        return lambda _values, _ms, _parent: memory[int(chance.random() * len(memory))] if memory else missing

    def _is_unquoted(self, field: FieldSpec, makers: dict[str, RecordGenerator]) -> bool:
        """Return whether a field's value is written without quotes; a copied value is written like the original."""
        if field.same is not None and self.stream.follows:
            origin = makers[self.stream.follows.stream]
            return origin.bare[origin.fields.index(field.same)]
        if field.recent:
            other = makers[field.recent.stream]
            return other.bare[other.fields.index(field.recent.field)]
        return field.is_numeric


# Every byte with its highest bit set.
_HIGH = bytes(value | 0x80 for value in range(256))


def _make(field: FieldSpec, fields: list[str], parent: list[str], chance: random.Random) -> Make:
    """Return the generator of one field, other than one with recent values of another stream."""
    if field.uuid:
        return lambda _values, _ms, _parent: _uuid(chance.getrandbits(128))
    if field.event_time:
        return lambda _values, ms, _parent: format_iso_time(ms)
    if field.same is not None:
        place = parent.index(field.same)
        return lambda _values, _ms, parent: parent[place]
    if field.sequence:
        count, form = (
            itertools.count(1),
            f"{field.sequence.prefix.replace('%', '%%')}%0{field.sequence.digits}d",
        )
        return lambda _values, _ms, _parent: form % next(count)
    if field.skewed:
        return _pick(_names(field.skewed), _zipf(field.skewed), chance)
    if field.choice:
        return _pick(list(field.choice), list(itertools.accumulate(field.choice.values())), chance)
    if field.int_:
        low, width = int(field.int_.low), int(field.int_.high) - int(field.int_.low) + 1
        return lambda _values, _ms, _parent: str(low + int(chance.random() * width))
    if field.float_:
        least, span, form = (
            field.float_.low,
            field.float_.high - field.float_.low,
            f"%.{field.float_.digits}f",
        )
        return lambda _values, _ms, _parent: form % (least + chance.random() * span)
    if field.session:
        return _session(fields.index(field.session.of), field.session.idle.micros // 1000)
    value = field.constant
    text = json.dumps(value) if field.is_numeric else json.dumps(str(value))[1:-1]
    return lambda _values, _ms, _parent: text


def _pick(names: list[str], weights: list[float], chance: random.Random) -> Make:
    total, last = weights[-1], len(names) - 1
    return lambda _values, _ms, _parent: names[bisect(weights, chance.random() * total, 0, last)]


def _names(skewed: SkewedKeys) -> list[str]:
    return [f"{skewed.prefix}{number:0{skewed.digits}d}" for number in range(1, skewed.count + 1)]


def _zipf(skewed: SkewedKeys) -> list[float]:
    return list(itertools.accumulate(rank**-skewed.exponent for rank in range(1, skewed.count + 1)))


def _session(owner: int, idle_ms: int) -> Make:
    sessions: dict[str, tuple[int, int]] = {}

    def make(values: Values, ms: int, _parent: Values) -> str:
        owner_value = values[owner]
        number, end_ms = sessions.get(owner_value, (0, -1))
        if ms > end_ms:
            number += 1
        sessions[owner_value] = (number, max(end_ms, ms + idle_ms))
        return f"{owner_value}-s{number}"

    return make


def _uuid(bits: int) -> str:
    text = f"{bits:032x}"
    # The bits of version 4 and variant 1, which a random UUID must contain.
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"


_seconds: dict[int, str] = {}


def format_iso_time(ms: int) -> str:
    """Format a time in milliseconds since 1970 as ISO-8601 in UTC."""
    second, rest = divmod(ms, 1000)
    text = _seconds.get(second)
    if text is None:
        if len(_seconds) > _SECOND_MEMORY:
            _seconds.clear()
        text = _seconds[second] = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
    return f"{text}.{rest:03d}Z"
