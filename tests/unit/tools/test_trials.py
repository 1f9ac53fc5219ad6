"""What is expected of an example: how it is read, compared and written down anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.diagnostics.failure import InvalidInput
from trials.comparing import differences, fits, found_instead, rewritten
from trials.expected import Bounds, Expected, Held, read

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.pipeline.load.document import YamlDocument

TEXT = """\
# what the shop sells
sizes:
  full:
    traffic: [--rows, "20", --start, "2026-01-01T09:00:00Z"]
    show:
      funnel: {rows: 3, sum: {clicks: 10}, has: [{page: home, clicks: 4}]}   # by page
      orders/postgres:
        rows: {at_least: 1}
"""
ROWS = [
    {"page": "home", "clicks": 4, "share": 0.1, "at": "2026-01-01 09:00:00+00:00"},
    {"page": "cart", "clicks": 6, "share": 0.2, "at": "2026-01-01 09:15:00+00:00"},
    {"page": "buy", "clicks": None, "share": "0.30", "at": None},
]


def load_expected(tmp_path: Path, text: str = TEXT) -> tuple[Expected, YamlDocument]:
    path = tmp_path / "expected.yml"
    path.write_text(text)
    return read(path)


def test_a_file_is_read_with_what_it_leaves_out(tmp_path: Path) -> None:
    size = load_expected(tmp_path)[0].sizes["full"]

    assert size.traffic == ["--rows", "20", "--start", "2026-01-01T09:00:00Z"]
    assert size.run == ["--until-caught-up"]
    assert size.show["orders/postgres"].rows == Bounds(at_least=1)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("sizes: {full: {shows: {}}}", "sizes.full.shows"),
        ("sizes: {full: {show: {}}}", "sizes.full.show"),
        ("sizes: {full: {show: {a: {rows: {}}}}}", "at_least"),
        ("sizes: {}", "sizes"),
        ("sizes: [", "expected.yml"),
    ],
)
def test_a_file_that_says_nothing_or_nonsense_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        load_expected(tmp_path, text)


@pytest.mark.parametrize(
    "held",
    [
        Held(rows=3),
        Held(rows=Bounds(at_least=2, at_most=3)),
        Held(sum={"clicks": 10, "share": 0.6}),
        Held(has=[{"page": "cart", "clicks": 6}]),
        Held(has=[{"at": "2026-01-01T10:00:00+01:00"}]),
        Held(has=[{"page": "buy", "clicks": None, "share": 0.3}]),
    ],
)
def test_rows_that_are_as_expected_have_no_difference(held: Held) -> None:
    assert list(differences(held, ROWS)) == []


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (Held(rows=4), "3 rows, wanted 4"),
        (Held(rows=Bounds(at_most=2)), "3 rows, wanted at most 2"),
        (Held(sum={"clicks": 11}), "clicks adds up to 10, wanted 11"),
        (Held(sum={"views": 1}), "no row has a column 'views'"),
        (
            Held(has=[{"page": "cart", "clicks": 7}]),
            "no row has page cart, clicks 7; the nearest has page cart, clicks 6",
        ),
        (
            Held(has=[{"at": "2026-01-01T09:00:01+00:00"}]),
            "no row has at 2026-01-01T09:00:01+00:00; the nearest",
        ),
        (Held(has=[{"page": True}]), "no row has page True"),
    ],
)
def test_rows_that_are_not_are_told_in_a_sentence(held: Held, said: str) -> None:
    (actual,) = differences(held, ROWS)

    assert actual.startswith(said)


def test_no_rows_at_all_are_told_too() -> None:
    assert list(differences(Held(rows=1, has=[{"page": "home"}]), [])) == [
        "0 rows, wanted 1",
        "no row has page home",
    ]


def test_fractions_may_differ_in_their_last_places() -> None:
    assert fits(0.3, 0.1 + 0.2)
    assert not fits(0.3, 0.300001)


def test_the_numbers_that_came_are_written_in_their_places_and_nothing_else_changes(tmp_path: Path) -> None:
    expected, document = load_expected(tmp_path)
    show = expected.sizes["full"].show
    rows = [{"page": "home", "clicks": 5}, {"page": "cart", "clicks": 2.5}]

    where = ("sizes", "full", "show")
    new = found_instead(show["funnel"], rows, (*where, "funnel"))
    new |= found_instead(show["orders/postgres"], rows, (*where, "orders/postgres"))

    assert rewritten(document, new) == TEXT.replace(
        "rows: 3, sum: {clicks: 10}, has: [{page: home, clicks: 4}]",
        "rows: 2, sum: {clicks: 7.5}, has: [{page: home, clicks: 5}]",
    )
