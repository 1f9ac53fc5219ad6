"""Settings of the rate source."""

from __future__ import annotations

from millstream.connectors.rate.source import RateSource


def test_rows_of_the_clock_cannot_be_replayed() -> None:
    assert not RateSource.is_replayable


def test_a_ramp_of_half_a_second_is_a_problem() -> None:
    problems = RateSource.model_validate({"ramp_up_time": "500 milliseconds"}).problems()

    assert [problem.field for problem in problems] == ["ramp_up_time"]
