"""Functions that only merge are recognised, and functions of any other shape are not."""

from __future__ import annotations

import pytest

from millstream.checking.scripts.migration.merge_function import MergeFunction, recognise_merge
from millstream.checking.scripts.migration.spec_parts import build_merge

MERGE = (
    "    (DeltaTable.forPath(spark, 'lake/a').alias('t')"
    ".merge({rows}.alias('s'), '{condition}'){clauses}.execute())\n"
)
ALL = ".whenMatchedUpdateAll().whenNotMatchedInsertAll()"
DELETES = ".whenMatchedDelete(\"s.op = 'd'\").whenMatchedUpdateAll().whenNotMatchedInsertAll(\"s.op != 'd'\")"
SORTED = "batch.orderBy(F.col('version').desc()).dropDuplicates(['id'])"
RANKED = (
    "batch.withColumn('n', F.row_number().over(Window.partitionBy('id').orderBy(F.desc('version'))))"
    ".where(F.col('n') == 1).drop('n')"
)


def recognise(
    before: str = "", rows: str = "batch", condition: str = "t.id = s.id", clauses: str = ALL, after: str = ""
) -> MergeFunction | None:
    """What is recognised of a function with these parts."""
    body = before + MERGE.format(rows=rows, condition=condition, clauses=clauses) + after
    return recognise_merge(f"def upsert(batch, number):\n{body}", "upsert")


@pytest.mark.parametrize(
    ("condition", "keys"),
    [
        ("t.id = s.id", ("id",)),
        ("t.id = s.id AND s.day = t.day", ("id", "day")),
        ("t.id = s.other", None),
        ("t.id = s.id AND t.at < s.at", None),
        ("t.id = t.id", None),
    ],
)
def test_the_keys_of_a_merge_are_the_columns_that_are_equal(
    condition: str, keys: tuple[str, ...] | None
) -> None:
    merge = recognise(condition=condition)

    assert (merge.keys if merge else None) == keys


@pytest.mark.parametrize(
    "latest",
    [
        SORTED,
        RANKED,
        SORTED.replace("F.col('version').desc()", "F.desc('version')"),
        SORTED.replace("F.col('version').desc()", "'version', ascending=False"),
    ],
)
@pytest.mark.parametrize("is_named", [True, False])
def test_the_newest_row_of_each_key_and_deletions_become_cdc(latest: str, *, is_named: bool) -> None:
    before, rows = (f"    newest = {latest}\n", "newest") if is_named else ("", latest)

    merge = recognise(before, rows, clauses=DELETES)

    assert merge == MergeFunction(("path", "lake/a"), ("id",), "version", "op = 'd'")
    sink, notes = build_merge(merge, "upsert", "append") or ({}, [])
    cdc = {"keys": ["id"], "sequence_by": "version", "apply_as_deletes": "op = 'd'"}
    assert sink == {"delta": {"path": "lake/a", "cdc": cdc}}
    assert any("let a row replace a newer one of an earlier batch" in note for note in notes)
    assert build_merge(merge, "upsert", "update") is None


def test_an_update_that_only_newer_rows_make_needs_no_note() -> None:
    clauses = ALL.replace("UpdateAll()", "UpdateAll(condition='s.version > t.version')")

    merge = recognise(rows=SORTED, clauses=clauses)

    assert merge is not None
    assert merge.is_guarded
    _, notes = build_merge(merge, "upsert", "append") or ({}, [])
    assert not any("let a row replace a newer one" in note for note in notes)


def test_deletions_without_an_order_become_merge_on_with_a_condition() -> None:
    merge = recognise(clauses=DELETES)

    assert merge is not None
    sink, _ = build_merge(merge, "upsert", "append") or ({}, [])
    assert sink == {"delta": {"path": "lake/a", "merge_on": ["id"], "delete_when": "op = 'd'"}}


@pytest.mark.parametrize(
    ("rows", "clauses", "topics"),
    [
        ("batch", ALL, ["two rows with the same key in one batch stop the query", "two NULLs in a key"]),
        (
            "batch",
            DELETES,
            ["two rows with the same key", "two NULLs in a key", "a row for which op = 'd' is NULL"],
        ),
        (SORTED, DELETES, ["two NULLs in a key", "a row for which op = 'd' is NULL"]),
    ],
)
def test_what_a_sink_does_with_null_and_with_equal_keys_is_noted(
    rows: str, clauses: str, topics: list[str]
) -> None:
    merge = recognise(rows=rows, clauses=clauses)

    assert merge is not None
    _, notes = build_merge(merge, "upsert", "append") or ({}, [])
    mentioned = [note for note in notes if note.startswith(("two ", "a row for which"))]
    assert [note.startswith(topic) for note, topic in zip(mentioned, topics, strict=True)] == [True] * len(
        topics
    )


def test_a_deletion_by_a_nested_field_has_its_whole_name() -> None:
    merge = recognise(clauses=DELETES.replace("s.op", "s.details.kind"))

    assert merge is not None
    assert merge.deletes == "details.kind = 'd'"


def test_harmless_statements_and_constants_are_read_over() -> None:
    text = (
        "PATH = 'lake/a'\n\n"
        "def upsert(batch, number):\n"
        "    if batch.isEmpty():\n        return\n"
        "    batch.persist()\n"
        "    print(number, batch.count())\n"
        "    rows = batch.count()\n    started = datetime.now()\n"
        "    table = DeltaTable.forPath(spark, PATH)\n"
        f"    table.alias('t').merge(batch.alias('s'), 't.id = s.id'){ALL}.execute()\n"
        "    batch.unpersist()\n"
    )

    merge = recognise_merge(text, "upsert")

    assert merge == MergeFunction(("path", "lake/a"), ("id",))


@pytest.mark.parametrize(
    "parts",
    [
        {"after": "    batch.write.save('x')\n"},
        {"before": "    written = save(batch)\n"},
        {"before": "    gone = spark.sql('DELETE FROM other')\n"},
        {"before": "    newest = save(batch)\n    newest = batch\n", "rows": "newest"},
        {"before": "    print(save(batch))\n"},
        {"rows": "batch.where('a > 1')"},
        {"rows": SORTED.replace("['id']", "['other']")},
        {"rows": SORTED.replace(".desc()", "")},
        {"rows": SORTED.replace("F.col('version').desc()", "'version'")},
        {"rows": RANKED.replace("== 1", "== 2")},
        {"clauses": ".whenMatchedUpdateAll()"},
        {"clauses": ".whenMatchedUpdate(set={'a': 's.a'}).whenNotMatchedInsertAll()"},
        {"clauses": DELETES.replace("s.op != 'd'", "s.op != 'x'")},
        {"clauses": ".whenMatchedDelete(\"s.op = 'd'\")" + ALL},
        {"clauses": ".whenMatchedDelete()" + ALL},
        {"clauses": '.whenMatchedDelete("s.old")' + DELETES},
        {"clauses": DELETES.replace("= 'd'", "= 'd' AND s.n != 1")},
        {"rows": "batch.alias(alias='s')"},
        {"clauses": ALL.replace("UpdateAll()", "UpdateAll('s.version > t.version')")},
        {"rows": SORTED, "clauses": ALL.replace("UpdateAll()", "UpdateAll('s.version < t.version')")},
    ],
)
def test_a_function_that_does_anything_else_is_not_recognised(parts: dict[str, str]) -> None:
    assert recognise(**parts) is None
