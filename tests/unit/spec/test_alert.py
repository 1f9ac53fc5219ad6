"""An alert is read from its words, and refused with what may stand there."""

from __future__ import annotations

import pytest

from millstream.spec.alert import AlertMeasure, parse_condition


@pytest.mark.parametrize(
    ("text", "watch", "limit"),
    [
        ("watermark_lag > 15 minutes", AlertMeasure.WATERMARK_LAG, 900),
        ("watermark_lag>90s", AlertMeasure.WATERMARK_LAG, 90),
        ("lag   growing for 5 minutes", AlertMeasure.LAG_GROWING, 300),
        ("no progress for 3 triggers", AlertMeasure.SILENCE, 3),
        ("no progress for 1 trigger", AlertMeasure.SILENCE, 1),
        ("lag > 10,000", AlertMeasure.LAG, 10_000),
    ],
)
def test_an_alert_is_a_figure_and_its_limit(text: str, watch: AlertMeasure, limit: float) -> None:
    condition = parse_condition(text)

    assert (condition.watch, condition.limit) == (watch, limit)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("watermark_lag > 15 minuts", "'15 minuts' is not a length of time"),
        ("watermark > 1 minute", "'watermark' cannot be compared"),
        ("lag > many", "'many' in alert 'lag > many' is not a number"),
        ("tell me", "'tell me' is not an alert; write"),
        ("no progress > 3", "'no progress > 3' is not an alert"),
    ],
)
def test_another_text_is_refused_with_what_it_may_be(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("(", r"\(")):
        parse_condition(text)
