"""Cases of the examples go red when what they guard is taken away: a watermark, a key, a writer's memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from millstream.connectors.api.writer import WriteResult
from millstream.connectors.delta.writer import DeltaWriter
from millstream.connectors.files.writer import FilesWriter
from millstream.testing.files.loader import load, load_text
from millstream.testing.runner.execute import run_case

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from millstream.testing.model import Outcome

EXAMPLES = Path(__file__).parents[3] / "examples"

NO_WATERMARK = {"watermark": None, "drop_duplicates_within_watermark": []}
FUNNEL = "ecommerce/tests/funnel.yml"
PURCHASES = "ecommerce/tests/purchases.yml"
AVERAGES = "starter/tests/averages.yml"
SUMMARY = "user_events/tests/summary.yml"
CLEAN = "dedup/tests/clean.yml"
MATCHING = "order_matching/tests/matching.yml"
EVENTS = "multi_sink/tests/events.yml"
WORDS = "word_count/tests/words.yml"

ANY_TIME = """
SELECT o.order_id, p.payment_id FROM orders AS o JOIN payments AS p ON o.order_id = p.order_id
"""
PAGES = "clickstream/tests/page_views.yml"
JOINS = "ad_ctr/tests/joins.yml"
RATES = "ad_ctr/tests/ctr.yml"
SENSORS = "sensors/tests/readings.yml"
ACTIVITY = "activity/tests/activity.yml"
TABLES = "table_stream/tests/tables.yml"
VISITS = "clickstream/tests/visits.yml"
STATE = "dedup/tests/state.yml"
STATUS = "user_status/tests/status.yml"

PAIRS = """
SELECT i.ad_id, i.user_id, i.impression_time, c.click_time FROM impressions AS i JOIN clicks AS c
ON i.ad_id = c.ad_id AND i.user_id = c.user_id
AND c.click_time BETWEEN i.impression_time AND i.impression_time + INTERVAL 30 MINUTES
"""
SHORTER = """
SELECT session_window.start AS began, max(timestamp) AS last_look, user_id, count(*) AS looks,
  size(collect_set(page)) AS pages
FROM clicks GROUP BY session_window(timestamp, '4 minutes'), user_id
"""
LAST = "SELECT `User`, last(gt) AS gt, max(Creation_Time) AS seen FROM newest_files GROUP BY `User`"


def without(*sources: str) -> dict[str, Any]:
    """Settings that take the watermarks of these sources away, and what leans on them."""
    return {f"sources.{name}.{key}": value for name in sources for key, value in NO_WATERMARK.items()}


def run_test(spark: SparkSession, file: str, name: str, tmp_path: Path, **laid: Any) -> Outcome:
    """One case of an example, with values laid over its pipeline; `name` is the beginning of its sentence."""
    path = EXAMPLES / file
    messages = yaml.safe_load(path.read_text(encoding="utf-8"))
    output = next(text for text in messages["tests"] if text.startswith(name))
    messages["tests"] = (
        {output: {**messages["tests"][output], "set": laid}} if laid else {output: messages["tests"][output]}
    )
    suite = load_text(str(path), yaml.safe_dump(messages, sort_keys=False), path, lambda _: {})
    assert [finding.message for finding in suite.findings] == []
    return run_case(spark, suite.cases[-1], tmp_path)


def writers(file: str, name: str) -> set[str]:
    """The kinds of sinks of the query that a case is about."""
    path = EXAMPLES / file
    case = next(item for item in load(path, lambda _: {}).cases if item.name.startswith(name))
    return {entry.sink.kind for entry in case.pipeline.queries[case.query].to}


def differs(outcome: Outcome) -> set[str]:
    """What was not as expected in the step that failed."""
    assert outcome.fault is None
    assert outcome.results[-1].error is None
    return {difference.what for difference in outcome.results[-1].differences}


def broken(laid: dict[str, Any]) -> set[str]:
    """What is taken away, without whose it is."""
    return {key.rpartition(".")[2] if key.startswith("sources.") else "views" for key in laid}


@pytest.mark.sweep(by=broken)
@pytest.mark.parametrize(
    ("file", "name", "laid"),
    [
        pytest.param(
            FUNNEL,
            "a click that is late by more than five minutes",
            without("clicks", "cart_events", "purchases"),
            id="a late click, without a watermark",
        ),
        pytest.param(
            PURCHASES,
            "a purchase that is late by less than five minutes is kept, a later one dropped",
            without("purchases"),
            id="a late purchase, without a watermark",
        ),
        pytest.param(
            AVERAGES,
            "a reading whose window has ended is dropped",
            {"sources.ticks.watermark": None},
            id="a late reading, without a watermark",
        ),
        pytest.param(
            FUNNEL,
            "a click that is late by less than five minutes counts",
            {"sources.clicks.watermark.delay_threshold": "1 minute"}
            | {"sources.cart_events.watermark.delay_threshold": "1 minute"}
            | {"sources.purchases.watermark.delay_threshold": "1 minute"},
            id="a click in time, with a shorter delay",
        ),
        pytest.param(
            AVERAGES,
            "a late reading counts while its window is open",
            {"sources.ticks.watermark.delay_threshold": "1 second"},
            id="a reading in time, with a shorter delay",
        ),
        pytest.param(
            FUNNEL,
            "a click that is delivered twice counts once",
            {"sources.clicks.drop_duplicates_within_watermark": []},
            id="a repeated click, without a key",
        ),
        pytest.param(
            FUNNEL,
            "a click that is delivered twice counts once",
            {"sources.clicks.drop_duplicates_within_watermark": ["user_id"]},
            id="a repeated click, with another key",
        ),
        pytest.param(
            PURCHASES,
            "a purchase that is delivered twice is kept once",
            {"sources.purchases.drop_duplicates_within_watermark": []},
            id="a repeated purchase, without a key",
        ),
        pytest.param(
            SUMMARY,
            "an event that is late by more than three minutes is dropped",
            without("user_events"),
            id="a late event of a summary, without a watermark",
        ),
        pytest.param(
            SUMMARY,
            "an event that is delivered twice counts once",
            {"sources.user_events.drop_duplicates_within_watermark": []},
            id="a repeated event of a summary, without a key",
        ),
        pytest.param(
            CLEAN,
            "an event that is late by more is dropped",
            {"sources.raw_events.watermark": None},
            id="a late raw event, without a watermark",
        ),
        pytest.param(
            CLEAN,
            "a retry is dropped",
            {"views.clean_events": {"sql": "SELECT * FROM raw_events"}},
            id="a retry, without a key",
        ),
        pytest.param(
            MATCHING,
            "a payment that is late by less than the watermark finds its order, a later one is dropped",
            without("orders", "payments"),
            id="a late payment, without a watermark",
        ),
        pytest.param(
            MATCHING,
            "a payment that is delivered twice makes one match",
            without("orders", "payments"),
            id="a repeated payment, without a key",
        ),
        pytest.param(
            MATCHING,
            "a payment counts from the order to four hours after it",
            {"views.matched_orders": {"sql": ANY_TIME}},
            id="a payment after four hours, without a range",
        ),
        pytest.param(
            EVENTS,
            "an event that is late by less than ten minutes is kept, a later one dropped",
            without("user_events"),
            id="a late event, without a watermark",
        ),
        pytest.param(
            EVENTS,
            "an event that is delivered twice is handed over once",
            {"sources.user_events.drop_duplicates_within_watermark": []},
            id="a repeated event, without a key",
        ),
        pytest.param(
            PAGES, "an event that is late", without("clicks"), id="a late look at a page, without a watermark"
        ),
        pytest.param(
            PAGES,
            "an event that is delivered twice",
            {"sources.clicks.drop_duplicates_within_watermark": []},
            id="a repeated look at a page, without a key",
        ),
        pytest.param(
            JOINS,
            "a click that is late",
            without("impressions", "clicks"),
            id="a late click on an ad, without a watermark",
        ),
        pytest.param(
            JOINS,
            "deliveries that come again",
            {"sources.clicks.drop_duplicates_within_watermark": []},
            id="a repeated click on an ad, without a key",
        ),
        pytest.param(
            RATES,
            "an alert is above five percent",
            {"views.high_ctr": "SELECT * FROM ctr WHERE ctr > 0.5"},
            id="an ad above five percent, with another limit",
        ),
        pytest.param(
            SENSORS,
            "a reading that is late",
            without("readings"),
            id="a late reading of a sensor, without a watermark",
        ),
        pytest.param(
            SENSORS,
            "a reading that is delivered twice",
            {"sources.readings.drop_duplicates_within_watermark": []},
            id="a repeated reading of a sensor, without a key",
        ),
        pytest.param(
            ACTIVITY,
            "with a watermark a late reading",
            {"sources.activity.watermark": None},
            id="a late reading of a phone, without a watermark",
        ),
        pytest.param(
            ACTIVITY,
            "a reading that comes again",
            {"views.unrepeated": "SELECT * FROM activity"},
            id="a repeated reading of a phone, without a key",
        ),
        pytest.param(
            TABLES,
            "an event that is late",
            without("order_events_in_time"),
            id="a late event of an order, without a watermark",
        ),
        pytest.param(
            TABLES,
            "an event that is in the table twice",
            {"sources.order_events_in_time.drop_duplicates_within_watermark": []},
            id="a repeated event of an order, without a key",
        ),
        pytest.param(
            JOINS,
            "a click without an impression",
            {"views.reconciled": {"sql": PAIRS}},
            id="a click without an impression, by an inner join",
        ),
        pytest.param(
            VISITS,
            "a visit lasts until",
            {"views.visits": {"sql": SHORTER}},
            id="a visit, with a shorter silence",
        ),
        pytest.param(
            STATE,
            "of each event one attempt",
            {"sources.attempts.watermark": None},
            id="keys of equal steps, without a watermark",
        ),
        pytest.param(
            STATUS,
            "actions are counted on",
            {"views.habits.initial_state": None},
            id="a count of actions, without a first state",
        ),
        pytest.param(
            STATUS,
            "what was done most",
            {"views.habits.state.times.ttl": None},
            id="what was done most, without a time to live",
        ),
        pytest.param(
            ACTIVITY,
            "what a person does",
            {"views.doing": {"sql": LAST}},
            id="what a person does, by the last reading that came",
        ),
    ],
)
def test_a_case_goes_red_without_the_watermark_or_the_key_that_it_is_about(
    spark: SparkSession, tmp_path: Path, file: str, name: str, laid: dict[str, Any]
) -> None:
    assert differs(run_test(spark, file, name, tmp_path, **laid))


@pytest.mark.sweep(by=writers)
@pytest.mark.parametrize(
    ("file", "name"),
    [
        pytest.param(FUNNEL, "the table has each window once", id="the funnel's table"),
        pytest.param(AVERAGES, "the table has each window once", id="the table of averages"),
        pytest.param(PURCHASES, "the files have each purchase once", id="the files of purchases"),
        pytest.param(CLEAN, "an event is written once", id="clean events"),
        pytest.param(MATCHING, "a match is written once", id="matched orders"),
        pytest.param(EVENTS, "the files have an event once", id="the files of raw events"),
        pytest.param(WORDS, "the table of the files is right", id="the table of words"),
        pytest.param(PAGES, "the files have each window once", id="the files of page views"),
        pytest.param(JOINS, "the files have each pair once", id="the files of pairs"),
        pytest.param(SENSORS, "each table is right", id="the table of sensors"),
        pytest.param(ACTIVITY, "the counts are replaced", id="the table of activities"),
        pytest.param(TABLES, "an hour is replaced", id="the table of hours"),
    ],
)
def test_a_case_with_a_crash_goes_red_with_a_writer_that_forgets_what_it_has_written(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, name: str
) -> None:
    def add(self: Any, frame: DataFrame, batch_id: int) -> WriteResult:  # noqa: ARG001 - what is forgotten
        sink = getattr(self, "sink", None) or self._sink
        frame.write.format(sink.kind).mode("append").save(str(sink.path))
        return WriteResult()

    for writer in (DeltaWriter, FilesWriter):
        monkeypatch.setattr(writer, "has_batch", lambda self, batch_id: False)  # noqa: ARG005 - Spark's batch
        monkeypatch.setattr(writer, "write", add)

    assert differs(run_test(spark, file, name, tmp_path))


def test_a_case_goes_red_with_a_rate_that_is_zero_where_there_is_none(
    spark: SparkSession, tmp_path: Path
) -> None:
    zero = (
        "SELECT window_start, click_count, purchase_count, coalesce(conversion_rate, 0D) AS conversion_rate "
        "FROM funnel"
    )

    outcome = run_test(
        spark,
        FUNNEL,
        "a window without clicks has no conversion rate",
        tmp_path,
        **{"views.zero": zero, "queries.funnel.from": "zero"},
    )

    assert differs(outcome)
