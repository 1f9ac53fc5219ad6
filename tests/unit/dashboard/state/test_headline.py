"""The sentence at the top of the page, compared with what is true: offsets and a clock that the page does not see."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from itertools import count

import pytest

from millstream.dashboard.state.kafka_lag import CURRENT
from millstream.engine.events.event_bus import Event
from millstream.spark.resources import OpenFiles
from unit.dashboard.conftest import START, at, batch, folded, started
from unit.dashboard.state.topic import SINKS, TRIGGER, Topic


def test_before_a_query_the_phase_of_the_start_is_named_with_its_length() -> None:
    topic = Topic(state=folded())
    assert topic.sentence(4) == ("start", "The run is starting", "checking the pipeline, 4.0 s so far")

    topic.take(Event("phase", "", {"text": "starting Spark"}, at(5)))

    assert topic.sentence(12) == ("start", "The run is starting", "starting Spark, 7.0 s so far")


def test_a_query_that_has_started_plans_its_first_batch() -> None:
    assert Topic().sentence(8) == ("start", "Starting", "funnel is planning its first batch")


def test_a_first_batch_tells_its_length_and_the_sinks_that_have_it() -> None:
    topic = Topic(end=900)
    topic.begin(2)
    topic.write("delta:funnel", 20)
    topic.poll(20)

    assert topic.sentence(22) == (
        "start",
        "Starting",
        "funnel: first batch, 20 s so far, delta:funnel written",
    )


def test_a_first_batch_that_takes_long_is_news_before_it_is_committed() -> None:
    topic = Topic(end=900)
    topic.begin(2)
    topic.poll(40)

    level, text, detail = topic.sentence(43)

    assert (level, text) == ("warn", "funnel is slower than its trigger")
    assert detail.startswith("the first batch has run for 41 s, and the trigger is 5 s")


def test_after_a_first_batch_of_57_seconds_all_is_not_well() -> None:
    topic = Topic(end=900)
    topic.begin(2)
    topic.commit(59)
    topic.end = 9000
    topic.poll(60)

    assert topic.sentence(60) == (
        "warn",
        "funnel is slower than its trigger",
        "the last batch took 57.0 s, but the trigger is 5 s",
    )


def test_a_batch_of_two_triggers_is_news_while_it_runs() -> None:
    topic = Topic()
    topic.run_batch(2)
    topic.begin(7)
    topic.poll(16)
    assert topic.sentence(16)[:2] == ("ok", "All is well")

    topic.write("delta:funnel", 17)
    topic.poll(18)

    assert topic.sentence(18) == (
        "warn",
        "funnel is slower than its trigger",
        "a batch has run for 11 s, and the trigger is 5 s; delta:funnel written; postgres:funnel not yet",
    )
    assert topic.sentence(140)[:2] == ("bad", "funnel is stalled")


def test_a_slow_query_is_slow_between_two_batches_too() -> None:
    topic = Topic()
    topic.run_batch(2, seconds=7.5)
    topic.run_batch(10, seconds=7.5)
    topic.poll(18)

    assert topic.sentence(18)[1:] == (
        "funnel is slower than its trigger",
        "a batch takes 7.5 s, but the trigger is 5 s",
    )


def test_a_failed_query_is_the_headline_whatever_its_lag() -> None:
    topic = Topic()
    topic.run_batch(2)
    topic.poll(4)
    failure = {"cause": "defect", "reason": "no such column", "fix": "", "batch": 1}
    topic.take(Event("query_failed", "funnel", failure, at(6)))

    assert topic.sentence(7) == ("bad", "funnel has failed", "no such column")


def test_a_sink_that_is_down_is_named_while_the_query_waits() -> None:
    topic = Topic()
    topic.run_batch(2)
    retry = {"reason": "postgres funnel: connection refused", "wait_seconds": 4.0, "failures": 1}
    topic.take(Event("retry", "funnel", retry, at(8)))

    assert topic.sentence(9) == (
        "warn",
        "funnel is retrying",
        "postgres funnel: connection refused; next attempt in 4.0 s",
    )


def test_batches_that_wait_for_a_sink_are_news_until_they_are_delivered() -> None:
    topic = Topic()
    topic.run_batch(2)
    aside = {"sink": "postgres:funnel", "batch": 0, "reason": "connection refused"}
    topic.take(Event("set_aside", "funnel", aside, at(3)))
    topic.poll(4)
    assert topic.sentence(4) == (
        "warn",
        "funnel cannot write to a sink",
        "1 batch waits for postgres:funnel: connection refused",
    )

    topic.take(Event("delivered_later", "funnel", {"sink": "postgres:funnel", "batch": 0}, at(5)))

    assert topic.sentence(6)[:2] == ("ok", "All is well")


def test_a_broker_that_is_down_is_news_before_spark_notices() -> None:
    topic = Topic()
    topic.run_batch(2)
    topic.poll(4)
    topic.state.observe_silence("clicks", "no Kafka broker responds at b:9092", START + 7)

    headline = topic.headline(9)
    assert (headline["level"], headline["text"], headline["since"]) == (
        "warn",
        "The broker of clicks does not respond",
        at(7),
    )

    topic.poll(10)
    assert topic.sentence(10)[2] == "1 query · all records are read"


def test_records_that_came_after_the_last_batch_are_not_read() -> None:
    topic = Topic()
    topic.run_batch(2)
    topic.end += 7
    topic.poll(5)

    assert topic.sentence(6) == ("ok", "All is well", "1 query · 7 records wait to be read")


def test_a_figure_older_than_a_trigger_is_told_with_its_age() -> None:
    topic = Topic()
    topic.run_batch(2)
    topic.poll(4)
    topic.take(Event("idle", "funnel", {}, at(12)))

    assert topic.sentence(11)[2] == "1 query · all records are read"
    assert topic.sentence(15)[2] == "1 query · all records were read 11 s ago"


def test_a_record_that_two_queries_have_not_read_waits_once() -> None:
    topic = Topic()
    topic.run_batch(2)
    other = {"trigger": "5 seconds", "batch": 3, "sources": ["clicks"], "offsets": [{"clicks": {"0": 40}}]}
    topic.take(Event("query_started", "copy", other, at(4)))
    topic.end = 130
    topic.poll(5)

    state = topic.state.document(START + 6)

    assert ([query["behind"] for query in state["queries"]], state["behind"]) == ([30, 90], 90)


def test_the_load_is_that_of_the_running_batch_once_it_is_longer() -> None:
    topic = Topic()
    topic.run_batch(2, seconds=1)
    topic.begin(7)

    assert topic.state.document(START + 7.5)["busy"] == 0.2
    assert topic.state.document(START + 21)["busy"] == 2.8


def test_an_idle_query_that_has_read_all_is_well() -> None:
    topic = Topic()
    topic.run_batch(2)
    topic.take(Event("idle", "funnel", {}, at(14)))
    topic.poll(15)

    assert topic.sentence(16) == ("ok", "All is well", "1 query · all records are read")


def test_a_restart_knows_what_waits_before_its_first_batch() -> None:
    topic = Topic(state=folded())
    data = {"trigger": "5 seconds", "batch": 4, "sources": ["clicks"], "offsets": [{"clicks": {"0": 50}}]}
    topic.take(Event("query_started", "funnel", data, at(1)))
    topic.committed, topic.end = 50, 450
    topic.poll(2)

    state = topic.state.document(START + 3)

    assert (state["behind"], state["headline"]["text"]) == (400, "Starting")


def test_a_query_with_a_backlog_that_shrinks_is_catching_up() -> None:
    topic = Topic(end=10_000)
    for second in range(2, 40, 3):
        topic.end += 30
        topic.poll(second)
    topic.begin(38)
    topic.planned = 6000
    topic.commit(40)

    assert topic.sentence(41) == ("ok", "Catching up", "1 query · 4,390 records wait to be read")


def test_a_query_that_reads_less_than_arrives_falls_behind() -> None:
    topic = Topic()
    for second in range(2, 120, 5):
        topic.end += 500
        topic.begin(second)
        topic.planned = topic.committed + 300
        topic.commit(second + 4)
        topic.poll(second + 4)

    level, text, detail = topic.sentence(120)

    assert (level, text) == ("warn", "funnel is falling behind")
    waiting, before = (int(number.replace(",", "")) for number in re.findall(r"[\d,]{3,}", detail))
    assert waiting == topic.end - topic.committed > before


def test_a_burst_during_one_batch_is_falling_behind_although_the_lag_went_up_and_down_before() -> None:
    topic = Topic()
    for second in range(2, 122, 5):
        topic.poll(second)
        topic.run_batch(second, 3.0, rows=300 if second % 2 else 100)
    topic.begin(122)
    for second in range(123, 130, 3):
        topic.end += 24_000
        topic.poll(second)

    level, text, detail = topic.sentence(130)

    assert (level, text) == ("warn", "funnel is falling behind")
    assert re.fullmatch(r"72,\d{3} records wait, and \d+ did 8.0 s ago", detail)


def test_of_two_late_queries_the_one_with_more_unread_records_is_named() -> None:
    state = folded(started(1), replace(started(1), query="purchases"))
    numbers = count(10)
    for query, behind in (("funnel", 460_000), ("purchases", 1_900)):
        for number in range(25):
            left = behind * (number + 1) // 25
            source = {
                "endOffset": {"t": {"0": 100}},
                "latestOffset": {"t": {"0": 100 + left}},
                "numInputRows": 1,
            }
            committed = batch(number, 2 + 5 * number, sources=[{"description": "K", **source}])
            state.take(replace(committed, query=query), next(numbers))
    state.take(Event("batch_started", "funnel", {"batch": 25, "sinks": SINKS}, at(123)), next(numbers))

    headline = state.document(START + 135)["headline"]

    assert [query["state"] for query in state.document(START + 135)["queries"]] == ["slow", "falling_behind"]
    assert headline["text"] == "funnel is slower than its trigger"


def test_a_watermark_that_does_not_move_while_newer_rows_arrive_is_news() -> None:
    topic = Topic()
    for number in range(20):
        now = 2 + 5 * number
        topic.run_batch(now, watermark=at(-600), newest=at(now))

    level, text, detail = topic.sentence(98)

    assert (level, text) == ("warn", "funnel has a watermark that does not move")
    assert "the watermark has been at 11:50:00 UTC for" in detail


def test_a_watermark_that_waits_for_newer_rows_is_no_news() -> None:
    topic = Topic()
    for number in range(20):
        topic.run_batch(2 + 5 * number, watermark=at(-600), newest=at(-590))

    assert topic.sentence(98)[0] == "ok"


def test_a_watermark_that_a_record_from_the_future_has_moved_is_not_behind_a_source() -> None:
    topic = Topic()
    for number in range(20):
        now = 2 + 5 * number
        newest = "2099-01-01T00:10:00.000Z" if number == 0 else at(now)
        topic.run_batch(now, watermark="2099-01-01T00:00:00.000Z", newest=newest)

    assert topic.sentence(98)[0] == "ok"


def test_open_files_near_their_limit_are_news_with_their_cause_and_what_to_do() -> None:
    topic = Topic()
    topic.run_batch(2)
    topic.state.read_open_files = lambda: (
        OpenFiles("jvm", 799, 1000, "they leak"),
        OpenFiles("python", 9, 10),
    )
    assert topic.sentence(5)[:2] == (
        "warn",
        "Millstream's Python process has 9 of at most 10 files and sockets open",
    )

    topic.state.read_open_files = lambda: (OpenFiles("jvm", 800, 1000, "they leak"),)

    level, text, detail = topic.sentence(5)
    assert (level, text) == ("warn", "Spark's JVM has 800 of at most 1,000 files and sockets open")
    assert detail.startswith(
        "they leak; restart the run, which resumes with its state; with 950 open it ends"
    )


def test_a_run_with_files_left_to_open_is_well() -> None:
    topic = Topic()
    topic.run_batch(2)
    topic.state.read_open_files = lambda: (OpenFiles("jvm", 799, 1000, "they leak"),)

    assert topic.sentence(5)[1] == "All is well"


def test_a_stalled_query_is_news_before_open_files_which_may_be_the_reason() -> None:
    topic = Topic()
    topic.run_batch(2)
    topic.state.read_open_files = lambda: (OpenFiles("jvm", 1000, 1000, "they leak"),)

    headline = topic.headline(100)

    assert headline["text"] == "funnel is stalled"
    assert headline["also"] == "also: Spark's JVM has 1,000 of at most 1,000 files and sockets open"


def test_a_run_that_is_over_says_how_it_ended() -> None:
    topic = Topic()
    topic.run_batch(2)
    topic.take(Event("query_stopped", "funnel", {"reason": "asked to end"}, at(60)))
    topic.take(Event("run_stopped", "", {"exit_code": 0}, at(61)))
    topic.state.run["live"] = False

    assert topic.sentence(99) == ("off", "The run has ended", "100 rows read in 1 min 1 s")


@pytest.mark.parametrize("seed", range(8))
def test_the_sentence_is_true_at_every_second_of_a_random_run(seed: int) -> None:
    draw = random.Random(seed)
    topic, ends_at, slow = Topic(), None, draw.uniform(0.5, 14)
    next_batch, ends = 2.0, [0, 0]
    for second in range(2, 400):
        topic.end += draw.choice((0, 0, 3, 40))
        if ends_at is not None and second >= ends_at:
            topic.commit(second)
            ends_at, next_batch = None, max(second, topic.planned_at + TRIGGER)
        if ends_at is None and second >= next_batch:
            topic.begin(second)
            ends_at = second + draw.uniform(0.2, slow)
        ends.append(topic.end)
        if draw.random() < 0.4:
            topic.poll(second)
        told = topic.headline(second)
        if "all records are read" in told["detail"]:
            assert topic.committed >= ends[max(0, second - int(CURRENT))]
        if waiting := re.search(r"([\d,]+) records? waits? to be read$", told["detail"]):
            assert topic.seen is not None
            assert int(waiting[1].replace(",", "")) == max(
                0, max(topic.seen[1], topic.committed) - topic.committed
            )
            assert second - topic.seen[0] <= CURRENT
        if told["level"] == "ok":
            assert ends_at is None or second - topic.planned_at <= 2 * TRIGGER
