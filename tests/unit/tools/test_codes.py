"""The page of codes has the severities of the findings."""

from __future__ import annotations

import pytest

from generators.codes import severity


@pytest.mark.parametrize(
    ("code", "severities"),
    [
        ("MS001", "error"),
        ("MS113", "info"),
        ("MS114", "error or info"),
        ("MS115", "info"),
        ("MS116", "error or warning"),
        ("MS117", "error"),
        ("MS118", "error or info"),
        ("MS119", "error or warning"),
        ("MS201", "error"),
        ("MS202", "warning"),
        ("MS575", "error or warning"),
    ],
)
def test_a_code_has_the_severities_of_its_findings(code: str, severities: str) -> None:
    assert severity(code) == severities
