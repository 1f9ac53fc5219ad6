"""Clauses of a foreachBatch function that catch the failure of a write, so that the batch is lost."""

from __future__ import annotations

import textwrap

import pytest

from unit.analysis.python.batch_code import JDBC, code


def test_a_failure_that_is_caught_and_logged_is_swallowed() -> None:
    (span,) = code(f"try:\n    {JDBC}\nexcept Exception as wrong:\n    print(wrong)").swallowing_clauses

    assert span.line == 4


@pytest.mark.parametrize(
    "clause",
    [
        "except Exception:\n    raise",
        "except UniqueViolation:\n    pass",
        'except Exception:\n    batch.write.save("failed")',
        "except Exception:\n    set_aside(batch)",
        "except Exception:\n    query.stop()",
        "except Exception as wrong:\n    failed = wrong\nif failed:\n    raise failed",
    ],
)
def test_a_failure_that_is_answered_is_not_swallowed(clause: str) -> None:
    assert code(f"try:\n    {JDBC}\n{clause}").swallowing_clauses == ()


@pytest.mark.parametrize(
    ("before", "inside", "line"),
    [
        ("if stopping:\n    raise InterruptedError", "", 7),
        ("", "if stopping:\n    raise InterruptedError", 7),
        ("if stopping:\n    raise InterruptedError", "if batch_id < 0:\n    raise ValueError", 8),
    ],
)
def test_a_function_that_raises_before_it_writes_may_swallow_the_failure(
    before: str, inside: str, line: int
) -> None:
    attempt = textwrap.indent(f"{inside or 'pass'}\n{JDBC}", "    ")
    body = f"{before or 'pass'}\ntry:\n{attempt}\nexcept Exception:\n    pass"

    assert [span.line for span in code(body).swallowing_clauses] == [line]


def test_a_loop_that_raises_what_an_earlier_attempt_failed_with_swallows_nothing() -> None:
    body = f"""
    failed = None
    for attempt in range(3):
        if attempt == 2:
            raise failed
        try:
            {JDBC}
            break
        except Exception as wrong:
            failed = wrong
    """

    assert code(body).swallowing_clauses == ()


STORE_ROW = """
def store(row):
    try:
        table.insert_one({"id": row.id})
    except Exception as wrong:
        print(wrong)


def put(row):
    table.insert_one({"id": row.id})
"""


@pytest.mark.parametrize(
    ("loop", "line"),
    [
        ("try:\n    spark.createDataFrame([row]).write.parquet('out')\nexcept Exception:\n    pass", 5),
        ("try:\n    put(row)\nexcept Exception:\n    pass", 5),
        ("store(row)", 8),
        ("order = row.order\nstore(order)", 9),
        ("put(row)", None),
        ("try:\n    price(row)\nexcept Exception:\n    pass", None),
    ],
)  # fmt: skip
def test_a_swallowed_failure_of_a_collected_row_is_known(loop: str, line: int | None) -> None:
    body = f"for row in batch.collect():\n{textwrap.indent(loop, '    ')}"

    clauses = code(body, STORE_ROW).swallowing_clauses

    assert [span.line for span in clauses] == ([line] if line else [])


@pytest.mark.parametrize(("call", "count"), [("table.insert(rows)", 1), ("rows.insert(0, None)", 0)])
def test_an_insert_into_a_collection_is_a_write_and_one_into_a_list_is_none(call: str, count: int) -> None:
    body = f"rows = batch.collect()\ntry:\n    {call}\nexcept Exception:\n    pass"

    assert len(code(body).swallowing_clauses) == count


def test_a_clause_around_no_write_swallows_no_batch() -> None:
    assert code(f"try:\n    send_mail()\nexcept Exception:\n    pass\n{JDBC}").swallowing_clauses == ()


@pytest.mark.parametrize("question", ["batch.count()", "batch.join(old, 'id').count()"])
def test_a_clause_around_a_question_swallows_no_batch(question: str) -> None:
    assert code(f"try:\n    {question}\nexcept Exception:\n    pass\n{JDBC}").swallowing_clauses == ()


@pytest.mark.parametrize(
    ("statement", "count"),
    [
        ("words = cutter.fit(batch).vocabulary\n    check_words(words)", 0),
        ("model = cutter.fit(batch)\n    words = model.vocabulary\n    check_words(words)", 0),
        ("first = batch.take(3)\n    ranked = [word for _, word in enumerate(first)]", 0),
        ("names = batch.columns\n    check_names(names)", 0),
        ("rows = sorted(batch.take(3), key=rank)", 0),
        ("assert isinstance(batch, DataFrame)", 0),
        ("list(map(send_row, batch.toLocalIterator()))", 1),
        ("getattr(batch.write, FORMAT)(PLACE)", 1),
        ("marked = cutter.fit(batch).transform(batch)\n    marked.write.save(PLACE)", 1),
    ],
)
def test_a_clause_around_what_only_reads_the_batch_swallows_no_batch(statement: str, count: int) -> None:
    clauses = code(f"try:\n    {statement}\nexcept Exception:\n    pass\n{JDBC}").swallowing_clauses

    assert len(clauses) == count


def test_a_function_of_the_script_with_the_name_of_one_of_python_may_write() -> None:
    body = "try:\n    format(batch)\nexcept Exception:\n    pass"
    format_function = f"def format(batch):\n    {JDBC}\n"

    assert len(code(body, format_function).swallowing_clauses) == 1


def test_rows_that_a_clause_sends_elsewhere_are_not_lost() -> None:
    body = """
    rows = batch.collect()
    try:
        batch.write.jdbc(URL, "t", "append")
    except Exception as error:
        for row in rows:
            {}
    """

    assert code(body.format("letters.store(row.asDict(), str(error))")).swallowing_clauses == ()
    assert len(code(body.format("logger.error(row)")).swallowing_clauses) == 1
