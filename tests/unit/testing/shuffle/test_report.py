import json
from typing import Any

from millstream.testing.shuffle.report import format_details, format_micros, summarize_outcome, to_json_data
from millstream.testing.shuffle.shuffle import ShuffleResult, shuffle
from unit.testing.shuffle.simulated import World, batchwise, case, right


def shuffled(world: Any) -> ShuffleResult:
    return shuffle(world, world.play, 10, 7)


def render_report(world: Any) -> str:
    return "\n".join(format_details(shuffled(world), world.items, {}))


def test_a_case_that_passes_is_told_in_one_sentence() -> None:
    world = World(case(1, 2, 3), right)

    assert summarize_outcome(shuffled(world)) == "10 splits into batches end with the batch result (seed 7)"
    assert render_report(world) == ""


def test_a_difference_is_told_with_its_batches_both_sides_and_a_test_to_keep() -> None:
    world = World(case(1, 2), batchwise)

    assert summarize_outcome(shuffled(world)) == "split 1 of 10 does not end with the batch result (seed 7)"
    assert render_report(world) == (
        """\
2 batches of 2 rows, the smallest that fails:
  batch  rows                  watermark after it
  1      clicks {at: 1, n: 0}
  2      clicks {at: 2, n: 1}
delta counts (the last row of each begin):
  batch result      after these batches
  {begin: 0, n: 2}  {begin: 0, n: 1}
these rows in one batch end with the batch result, so the split into batches is the cause

add it as a test:
  "windows are counted, in 2 batches":
    query: counts
    steps:
    - feed:
        clicks:
        - {at: 1, "n": 0}
      expect:
      - {begin: 0, "n": 1}
    - feed:
        clicks:
        - {at: 2, "n": 1}
      expect:
      - {begin: 0, "n": 2}"""
    )


def test_a_dropped_row_is_told_with_its_time_the_watermark_and_what_moved_it() -> None:
    actual = render_report(World(case(1, 30, 2), right))

    assert (
        "  clicks {at: 2, n: 2}\n    event time 1970-01-01 00:02:00; the watermark was at 1970-01-01 00:29:00"
        in actual
    )
    assert "moved there by clicks {at: 30, n: 1}" in actual


def test_the_same_is_told_as_data() -> None:
    world: Any = World(case(1, 30, 2, 3), batchwise)

    data = json.loads(json.dumps(to_json_data(shuffled(world), world.items, {})))

    assert data["passed"] is False
    assert [len(part["rows"]) for part in data["wrong"]["batches"]] == [1, 1]
    assert data["wrong"]["differences"][0]["changed"][0]["answer"]["n"] == 2
    assert "steps:" in data["wrong"]["test"]


def test_dropped_rows_are_told_as_data() -> None:
    world: Any = World(case(1, 30, 2), right)

    (row,) = to_json_data(shuffled(world), world.items, {})["dropped"]

    assert row["row"] == {"at": 2, "n": 2}
    assert row["moved_by"] == {"at": 30, "n": 1}
    assert (row["event_time"], row["watermark"]) == ("1970-01-01 00:02:00", "1970-01-01 00:29:00")


def test_times_are_told_to_the_microsecond() -> None:
    assert format_micros(1_500_000) == "1970-01-01 00:00:01.500000"
