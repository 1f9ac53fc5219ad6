"""`millstream dev` in the session of the tests: someone saves files, and reads what is printed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from millstream.cli.dev import loop
from millstream.cli.main import run_command

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

SPEC = """name: shop
sources:
  orders:
    kafka: {bootstrap_servers: "localhost:1", subscribe: orders}
    schema: {user: string, amount: double, ts: timestamp}
    watermark: {event_time: ts, delay_threshold: 1 minute}
    on_malformed: dead_letter
  ticks: {rate: {rows_per_second: 10}}
views:
  big: "SELECT user, amount, ts FROM orders WHERE amount > 10"
  odd: "SELECT timestamp, value FROM ticks WHERE value % 2 = 1"
  checked: {python: "functions:checked"}
queries:
  big: {to: {console: {}}}
  odd: {to: {console: {}}}
  checked: {to: {console: {}}}
"""
PYTHON = "def checked(ticks):\n    return ticks.selectExpr('value')\n"
TESTS = """tests:
  a large order counts:
    query: big
    steps: [{feed: {orders: [{user: ada, amount: 20, ts: "2026-01-01 12:00"}]}, expect: [{user: ada}]}]
"""


@pytest.fixture
def develop(
    spark: SparkSession,  # noqa: ARG001 - `dev` uses the session that is active
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., list[str]]:
    """Run `dev`, and save files one after the other; return what each round prints."""
    for name, text in (("pipeline.yml", SPEC), ("functions.py", PYTHON), ("tests/big.yml", TESTS)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)

    def run(*saves: tuple[str, str], args: tuple[str, ...] = ()) -> list[str]:
        waiting, rounds = [*saves], list[str]()

        def wait(scan: Callable[[], Any], before: Any) -> None:
            rounds.append(capsys.readouterr().out)
            if not waiting:
                raise KeyboardInterrupt
            name, text = waiting.pop(0)
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
            assert scan() != before

        monkeypatch.setattr(loop, "wait_for_change", wait)
        assert run_command(["dev", *args]) == 0
        return rounds

    return run


def test_a_saved_view_shows_its_rows_and_runs_only_the_tests_behind_it(
    develop: Callable[..., list[str]],
) -> None:
    first, unrelated, related = develop(
        ("pipeline.yml", SPEC.replace("% 2 = 1", "% 2 = 0")),
        ("pipeline.yml", SPEC.replace("% 2 = 1", "% 2 = 0").replace("> 10", "> 30")),
    )

    assert "rows   big, 1 row" in first
    assert "orders: 1 row of the test 'a large order counts'" in first
    assert "1 passed (1 of 1 affected)" in first
    assert "rows   odd" in unrelated
    assert "ticks: 100 generated rows" in unrelated
    assert "1 passed (0 of 1 affected)" in unrelated
    assert "rows   big, 0 rows" in related
    assert "1 failed (1 of 1 affected)" in related
    assert "tests/big.yml:2" in related


def test_half_a_save_is_one_sentence_and_the_next_save_goes_on(develop: Callable[..., list[str]]) -> None:
    _, half, empty, whole = develop(
        ("pipeline.yml", SPEC[: SPEC.index("schema: {user") + 12]),
        ("pipeline.yml", ""),
        ("pipeline.yml", SPEC),
    )

    assert "error[MS001]" in half
    assert "Rows and tests follow when the check finds no errors" in half
    assert "error[MS001]" in empty
    assert "1 passed (0 of 1 affected)" in whole


def test_a_function_that_fails_is_a_finding_and_its_saved_module_is_read_again(
    develop: Callable[..., list[str]],
) -> None:
    _, failing, fixed = develop(
        ("functions.py", PYTHON.replace("'value'", "'vale'")),
        ("functions.py", PYTHON.replace("'value'", "'value + 1000 AS more'")),
    )

    assert "functions.py:2" in failing
    assert "rows   checked" in fixed
    assert "1009" in fixed


def test_lines_of_a_sample_file_are_decoded_as_messages(develop: Callable[..., list[str]]) -> None:
    orders = [
        {"user": "ada", "amount": 50, "ts": "2026-01-01 12:00:00"},
        {"user": "eve", "amount": 60, "ts": "2026-01-01 12:05:00"},
        {"user": "bob", "amount": 5, "ts": "2026-01-01 12:00:00"},
    ]
    text = "".join(f"{json.dumps(order)}\n" for order in orders) + "half a messa\n"

    _, sampled = develop(("samples/orders.jsonl", text))

    assert "orders: 4 records of samples/orders.jsonl" in sampled
    assert "rows   big, 2 rows" in sampled
    assert sampled.index("eve") < sampled.index("ada"), "the newest row is first"


def test_a_source_without_a_sample_is_named(develop: Callable[..., list[str]]) -> None:
    (_, untested) = develop(("tests/big.yml", TESTS.replace("orders:", "visits:")))

    assert "orders: no sample" in untested
    assert "samples/orders.jsonl" in untested


def test_a_view_that_is_unknown_is_said_each_time(develop: Callable[..., list[str]]) -> None:
    (only,) = develop(args=("--view", "huge"))

    assert "there is no view or source 'huge'" in only


def test_a_row_on_which_a_view_fails_is_a_sentence(develop: Callable[..., list[str]]) -> None:
    _, failing = develop(
        (
            "pipeline.yml",
            SPEC.replace("value FROM ticks WHERE", "1 / value AS v FROM ticks WHERE 1 / value > 0 AND"),
        )
    )

    assert "odd cannot be computed: Division by zero" in failing
    assert "Traceback" not in failing
