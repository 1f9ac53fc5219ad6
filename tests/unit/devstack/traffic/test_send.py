"""Generated traffic: the same each time, and what the file says of it."""

from __future__ import annotations

import csv
import itertools
import json
import textwrap
from datetime import datetime
from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml

from millstream.devstack.traffic import send
from millstream.devstack.traffic.flow import RecordKind, TrafficFlow, TrafficRecord
from millstream.devstack.traffic.model import Damage, Traffic, read_traffic
from millstream.devstack.traffic.send import SendPlan
from millstream.diagnostics.failure import InvalidInput

START = 1_767_268_800_000_000
MINUTE_MS = 60_000
SHOP = """
streams:
  clicks:
    rate: 50
    key: user
    fields:
      id: uuid
      user: {skewed: {prefix: u, count: 20}}
      session: {session: {of: user, idle: 1 minute}}
      at: event_time
    disorder: 2 minutes
    late: {share: 0.02, by: [30 minutes, 40 minutes]}
    duplicates: {share: 0.1, within: 10 seconds}
    malformed: {share: 0.05}
  buys:
    follows: {stream: clicks, share: 0.5, after: [1 second, 5 seconds]}
    fields:
      id: {sequence: {prefix: b, digits: 4}}
      user: {same: user}
      amount: {int: [1, 9]}
      at: event_time
"""


def traffic(text: str = SHOP) -> Traffic:
    return Traffic.model_validate(yaml.safe_load(textwrap.dedent(text)))


def records(count: int = 5000, seed: int = 1, start: int = START, text: str = SHOP) -> list[TrafficRecord]:
    return list(itertools.islice(TrafficFlow(traffic(text), seed, start), count))


def of(found: list[TrafficRecord], topic: str, *kinds: RecordKind) -> list[TrafficRecord]:
    return [item for item in found if item.topic == topic and item.kind in kinds]


def test_the_same_seed_and_start_give_the_same_records() -> None:
    assert records() == records()


def test_fewer_rows_are_the_beginning_of_more() -> None:
    assert records(500) == records(5000)[:500]


def test_another_seed_gives_other_records() -> None:
    assert records(seed=1)[0].value != records(seed=2)[0].value


def test_another_start_gives_other_identifiers() -> None:
    first = {item.event_id for item in of(records(), "clicks", RecordKind.GOOD)}
    second = {item.event_id for item in of(records(start=START + 1_000_000), "clicks", RecordKind.GOOD)}

    assert not first & second


def test_records_come_in_the_order_of_sending() -> None:
    times = [record.at for record in records()]

    assert times == sorted(times)


def test_a_good_record_is_json_with_the_fields_in_order() -> None:
    value = json.loads(of(records(), "buys", RecordKind.GOOD)[0].value)

    assert list(value) == ["id", "user", "amount", "at"]
    assert isinstance(value["amount"], int)
    assert datetime.fromisoformat(value["at"]).tzinfo is not None


def test_disorder_stays_within_its_bound() -> None:
    delays = [item.at // 1000 - item.event_ms for item in of(records(), "clicks", RecordKind.GOOD)]

    assert min(delays) >= 0
    assert MINUTE_MS < max(delays) <= 2 * MINUTE_MS


def test_a_late_record_is_as_late_as_declared() -> None:
    delays = [item.at // 1000 - item.event_ms for item in of(records(), "clicks", RecordKind.LATE)]

    assert delays
    assert all(30 * MINUTE_MS <= delay <= 40 * MINUTE_MS for delay in delays)


def test_a_duplicate_is_a_good_record_again_within_its_time() -> None:
    actual = records()
    first = {entry.event_id: entry for entry in of(actual, "clicks", RecordKind.GOOD)}

    second = of(actual, "clicks", RecordKind.DUPLICATE)

    assert second
    for item in second:
        origin = first[item.event_id]
        assert (item.value, item.key) == (origin.value, origin.key)
        assert 0 < item.at - origin.at <= 10_000_001


def test_shares_are_about_what_is_declared() -> None:
    actual = records(20_000)
    events = of(actual, "clicks", RecordKind.GOOD, RecordKind.LATE, RecordKind.MALFORMED)

    assert len(of(actual, "clicks", RecordKind.MALFORMED)) / len(events) == pytest.approx(0.05, abs=0.01)
    assert len(of(actual, "clicks", RecordKind.LATE)) / len(events) == pytest.approx(0.02, abs=0.01)


@pytest.mark.parametrize("damage", list(Damage))
def test_no_damaged_record_reads_as_the_schema_says(damage: Damage) -> None:
    text = SHOP + f"    malformed: {{share: 1, kinds: [{damage}]}}\n"

    for item in of(records(300, text=text), "buys", RecordKind.MALFORMED):
        try:
            value = json.loads(item.value)
        except (ValueError, UnicodeDecodeError):
            continue
        assert not isinstance(value["amount"], int)


LINES = """
streams:
  readings:
    rate: 50
    fields:
      sensor: {skewed: {prefix: s, count: 20}}
      value: {float: [1.0, 9.0]}
      note: {choice: {"warm, and dry": 1, cold: 1}}
      at: event_time
    format: csv
"""


def test_a_record_may_be_a_line_of_csv() -> None:
    rows = [next(csv.reader([record.value.decode()])) for record in records(200, text=LINES)]

    assert {len(row) for row in rows} == {4}
    assert {row[2] for row in rows} == {"warm, and dry", "cold"}
    assert all(1 <= float(row[1]) <= 9 and datetime.fromisoformat(row[3]) for row in rows)


@pytest.mark.parametrize("damage", list(Damage))
def test_no_damaged_line_reads_as_the_schema_says(damage: Damage) -> None:
    text = LINES + f"    malformed: {{share: 1, kinds: [{damage}]}}\n"

    for record in records(300, text=text):
        try:
            row = next(csv.reader([record.value.decode()]), [])
        except UnicodeDecodeError:
            continue
        assert len(row) != 4 or not row[1].replace(".", "").isdigit()


def test_a_line_of_csv_has_two_fields_at_least() -> None:
    with pytest.raises(ValueError, match="needs two fields"):
        traffic("streams: {words: {rate: 1, format: csv, fields: {word: uuid}}}")


def test_an_event_happens_after_the_one_it_follows() -> None:
    text = SHOP.replace("user: {skewed: {prefix: u, count: 20}}", "user: {sequence: {prefix: u}}")
    actual = records(text=text)
    clicked = {json.loads(entry.value)["user"]: entry for entry in of(actual, "clicks", RecordKind.GOOD)}

    for item in of(actual, "buys", RecordKind.GOOD):
        before = clicked.get(json.loads(item.value)["user"])  # none when the click itself was malformed
        assert before is None or item.event_ms - before.event_ms in range(1000, 5001)


def test_a_session_belongs_to_one_user() -> None:
    owners: dict[str, set[str]] = {}
    for item in of(records(), "clicks", RecordKind.GOOD):
        value = json.loads(item.value)
        owners.setdefault(value["session"], set()).add(value["user"])

    assert len(owners) > 20
    assert all(len(users) == 1 for users in owners.values())


def test_a_burst_multiplies_the_rate() -> None:
    text = (
        "streams: {a: {rate: 10, bursts: {every: 20 seconds, for: 10 seconds, times: 5}, fields: {id: uuid}}}"
    )
    actual = [record for record in records(2000, text=text) if record.at < START + 20_000_000]

    early = sum(item.at < START + 10_000_000 for item in actual)

    assert early / (len(actual) - early) == pytest.approx(5, rel=0.2)


def test_a_skewed_key_has_few_frequent_values() -> None:
    text = "streams: {a: {rate: 10, key: k, fields: {k: {skewed: {prefix: p, count: 50, digits: 3}}}}}"
    keys = [record.key for record in records(5000, text=text)]

    assert keys.count(b"p001") > 10 * keys.count(b"p050")
    assert len(set(keys)) == 50


def test_a_reference_is_a_value_the_other_stream_gave() -> None:
    text = """
    streams:
      orders: {rate: 10, fields: {id: {sequence: {prefix: o}}}}
      pays: {rate: 5, fields: {order: {recent: {stream: orders, field: id, last: 3}}}}
    """
    item: list[str] = []
    for record in records(500, text=text):
        value = json.loads(record.value)
        if record.topic == "orders":
            item.append(value["id"])
        else:
            assert value["order"] in item[-3:]


def test_two_fields_have_recent_values_of_one_field() -> None:
    text = """
    streams:
      orders: {rate: 10, fields: {id: {sequence: {prefix: o}}}}
      pays:
        rate: 5
        fields:
          order: {recent: {stream: orders, field: id, last: 3}}
          earlier: {recent: {stream: orders, field: id, last: 50}}
    """
    values = [json.loads(item.value) for item in of(records(500, text=text), "pays", RecordKind.GOOD)]

    assert all(value["order"] and value["earlier"] for value in values[10:])


def test_a_number_of_another_stream_is_null_before_its_first_event() -> None:
    text = """
    streams:
      orders: {rate: 10, fields: {id: uuid}}
      bills:
        follows: {stream: orders, share: 1, after: [1 second, 2 seconds]}
        fields: {id: uuid, amount: {int: [1, 9]}}
      pays: {rate: 5, fields: {amount: {recent: {stream: bills, field: amount}}}}
    """
    amounts = [
        json.loads(item.value)["amount"] for item in of(records(500, text=text), "pays", RecordKind.GOOD)
    ]

    assert amounts[0] is None
    assert amounts[-1] in range(1, 10)


def test_the_plan_of_rows_without_a_start_ends_about_this_moment() -> None:
    actual = traffic("streams: {a: {rate: 10, fields: {id: uuid}}}")

    plans = [SendPlan.of(actual, rows=rows) for rows in (10, 36_010)]

    assert (plans[0].start - plans[1].start) / 1_000_000 == pytest.approx(3600, abs=5)


class PacedClock:
    """A clock that only the sender's waits move, and the event that would end the sending."""

    def __init__(self) -> None:
        self.now, self.waits = 0.0, 0

    def is_set(self) -> bool:
        return False

    def wait(self, seconds: float) -> None:
        self.now, self.waits = self.now + seconds, self.waits + 1


def test_a_thousand_records_a_second_are_sent_at_a_hundred_wakeups(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = PacedClock()
    monkeypatch.setattr(send.time, "monotonic", lambda: clock.now)
    plan = SendPlan(seed=1, start=START, seconds=10)
    sender = send.Sender(traffic().at_rate(1000), plan, "unused")
    delays = [
        clock.now - (record.at - START) / 1_000_000
        for record in sender._due(clock, Mock(), 0.0)  # type: ignore[arg-type]
    ]
    assert len(delays) > 9_000
    assert clock.waits < 1_200
    assert min(delays) > -1e-9
    assert max(delays) < 0.011
    assert clock.now >= 10


def test_the_rate_of_a_follower_comes_from_what_it_follows() -> None:
    assert traffic().at_rate(100).rates() == pytest.approx({"clicks": 110, "buys": 50})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("streams: {a: {rate: 1, fields: {id: {uuid: true, same: x}}}}", "exactly one generator"),
        (
            "streams: {a: {rate: 1, fields: {screen: {choice: ['24\" wide', small]}}}}",
            "the choice '24\" wide' contains a quote",
        ),
        ("streams: {a: {fields: {id: uuid}}}", "needs either 'rate' or 'follows', not both"),
        ("streams: {a: {rate: 1, key: k, fields: {id: uuid}}}", "there is no field 'k'"),
        ("streams: {a: {follows: {stream: b, share: 1, after: [1s, 2s]}, fields: {i: uuid}}}", "follows 'b'"),
        (
            "streams: {a: {rate: 1, fields: {n: {int: [5, 2]}}}}",
            "the smallest number, 5, is above the largest, 2",
        ),
        ("streams: {a: {rate: 1, fields: {id: uuid}, disorder: soon}}", "'soon' is not a length of time"),
        (
            "start: 2026-01-01T00:00:00\nstreams: {a: {rate: 1, fields: {id: uuid}}}",
            "start needs a time zone",
        ),
        ("[1, 2", "is not YAML"),
        ("", "the file"),
    ],
)
def test_a_mistake_in_the_file_is_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "traffic.yml").write_text(text)

    with pytest.raises(InvalidInput) as error:
        read_traffic(tmp_path / "traffic.yml")

    assert words in error.value.what


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "traffic.yml").write_text("streams: {a: {rate: -1, fields: {id: uuid}, nonsense: 1}}")

    with pytest.raises(InvalidInput, match=r"streams\.a\.rate.*streams\.a\.nonsense"):
        read_traffic(tmp_path / "traffic.yml")


def test_the_shop_of_the_examples_is_valid() -> None:
    actual = read_traffic(Path(__file__).parents[4] / "examples/ecommerce/traffic.yml")

    assert [need.name for need in actual.needs()] == ["clicks", "cart_events", "purchases"]
