"""Every usual spelling of a length of time is understood."""

from __future__ import annotations

import pytest

from millstream.spec.duration import Duration


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("5 secs", "5 seconds"),
        ("1 sec", "1 second"),
        ("5 min", "5 minutes"),
        ("5mins", "5 minutes"),
        ("2 hrs", "2 hours"),
        ("1 HR 30 Min", "1 hour 30 minutes"),
        ("90s", "90 seconds"),
    ],
)
def test_a_short_unit_is_the_long_one(text: str, length: str) -> None:
    assert Duration(text) == length


@pytest.mark.parametrize("text", ["ten seconds", "5 mon", "5", "5 s x", "1.5 min"])
def test_what_is_no_length_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a length of time"):
        Duration(text)
