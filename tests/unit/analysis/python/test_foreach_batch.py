"""Facts in the source of foreachBatch functions."""

from __future__ import annotations

import pytest

from millstream.analysis.python import foreach_batch
from unit.analysis.python.batch_code import JDBC, code


def test_an_append_says_its_format_and_place() -> None:
    (write,) = code(JDBC).writes

    assert (write.format, write.only_adds) == ("jdbc", True)
    assert write.span is not None
    assert (write.span.line, write.span.column) == (2, 5)


@pytest.mark.parametrize(
    ("line", "form", "adds"),
    [
        ('batch.write.jdbc(URL, "t", mode="append")', "jdbc", True),
        ('batch.write.jdbc(URL, "t", "append")', "jdbc", True),
        ('batch.write.jdbc(URL, "t", "overwrite")', "jdbc", False),
        ('batch.write.mode("overwrite").parquet("out")', "parquet", False),
        ('batch.write.mode("append").parquet("out")', "parquet", True),
        ('batch.select("a").write.save("out", format="delta", mode="append")', "delta", True),
        ('batch.write.format("kafka").option("topic", "t").save()', "kafka", True),
        ('batch.write.format("kafka").mode(MODE).save()', "kafka", True),
        ('batch.write.parquet("out", "append")', "parquet", True),
        ('batch.write.save("out", "delta", "append")', "delta", True),
        ('batch.write.json("out", "overwrite")', "json", False),
        ('batch.write.insertInto("t")', "", True),
        ('batch.write.insertInto("t", True)', "", False),
        ('batch.writeTo("t").append()', "", True),
        ('batch.writeTo("t").overwritePartitions()', "", False),
        ('batch.write.format("delta").option("txnAppId", "a").option("txnVersion", 1).mode("append").save()',
         "delta", False),
        ('batch.write.mode(MODE).parquet("out")', "parquet", False),
        ('batch.write.format("org.neo4j.spark.DataSource").mode("append").option("query", MERGE).save()',
         "org.neo4j.spark.datasource", False),
    ],
)  # fmt: skip
def test_a_write_adds_rows_or_replaces_them(line: str, form: str, adds: bool) -> None:
    (write,) = code(line).writes

    assert (write.format, write.only_adds) == (form, adds)


@pytest.mark.parametrize(
    ("line", "once"),
    [
        ('batch.write.parquet("out")', True),
        ("batch.write.save(PLACE)", True),
        ('batch.write.format("delta").save(PLACE)', True),
        ('batch.write.mode("error").json("out")', True),
        ('batch.write.saveAsTable("t")', True),
        ('batch.write.mode("append").parquet("out")', False),
        ('batch.write.parquet("out", "overwrite")', False),
        ('batch.write.json("out", "append")', False),
        ('batch.write.save("out", "delta", "overwrite")', False),
        ('batch.write.saveAsTable("t", "delta", MODE)', False),
        ('batch.write.csv("out", "error")', True),
        ("batch.write.mode(MODE).parquet(PLACE)", False),
        ('batch.write.parquet(f"out/{number}")', False),
        ('batch.write.parquet(f"out/{time()}")', False),
        ("place = here()\nbatch.write.parquet(place)", False),
        ('batch.write.format("kafka").save()', False),
        ("batch.write.format(FORMAT).save()", False),
        ("batch.write.save(PLACE, format=FORMAT)", False),
        ("batch.write.save(PLACE, FORMAT)", False),
        ('batch.write.format(FORMAT).saveAsTable("t")', True),
        ('batch.write.save(PLACE, format="delta")', True),
        ('batch.write.format("org.apache.spark.sql.cassandra").save()', False),
        ('batch.write.jdbc(URL, "t")', True),
        ('batch.write.jdbc(URL, "t", "append")', False),
        ('batch.write.insertInto("t")', False),
        ('batch.write.format("jdbc").option("dbtable", f"t{number}").save()', False),
        ('batch.write.format("jdbc").option("dbtable", NAME).save()', True),
    ],
)
def test_a_write_that_refuses_what_is_there_can_be_made_once(line: str, once: bool) -> None:
    assert [write.refuses_existing for write in code(line).writes] == [once]


@pytest.mark.parametrize(
    ("body", "once"),
    [
        ('if batch.count() > 0:\n    batch.write.parquet("out")', True),
        ('rows = batch.count()\nif rows == 0:\n    return\nbatch.write.parquet("out")', True),
        ('try:\n    batch.write.parquet("out")\nexcept OSError:\n    raise', True),
        ('if not exists("out"):\n    batch.write.parquet("out")\nelse:\n    merge()', False),
        ('if exists("out"):\n    merge()\n    return\nbatch.write.parquet("out")', False),
        ('try:\n    merge()\nexcept OSError:\n    batch.write.parquet("out")', False),
        ("store(batch)", True),
        ('if not exists("out"):\n    store(batch)', False),
    ],
)
def test_a_write_that_only_the_first_batch_makes_may_refuse_what_is_there(body: str, once: bool) -> None:
    (write,) = code(body, 'def store(rows):\n    rows.write.parquet("out")').writes

    assert (write.refuses_existing, write.cannot_replay) == (once, once)


@pytest.mark.parametrize(
    ("line", "first_only"),
    [
        ('batch.write.mode("ignore").parquet("out")', True),
        ('batch.write.format("jdbc").option("dbtable", "t").mode("ignore").save()', True),
        ('store(batch, "out")', True),
        ('store(batch, f"out/{number}")', False),
        ("store(batch, here())", False),
        ('batch.write.mode("ignore").parquet(f"out/{number}")', False),
        ('batch.limit(0).write.mode("ignore").parquet("out")', False),
        ('batch.write.mode("append").mode("overwrite").parquet("out")', False),
    ],
)
def test_a_write_that_ignores_what_is_there_keeps_the_first_batch(line: str, first_only: bool) -> None:
    helper = 'def store(rows, place):\n    rows.write.mode("ignore").parquet(place)'

    assert [write.ignores_existing for write in code(line, helper).writes] == [first_only]


@pytest.mark.parametrize(
    ("body", "used"),
    [
        (f'print(f"batch {{number}}")\n{JDBC}', False),
        (f'log.info("batch %s", number)\n{JDBC}', False),
        (f'batch = batch.withColumn("batch", F.lit(number))\n{JDBC}', True),
        (f"if seen(number):\n    return\n{JDBC}", True),
        (JDBC, False),
    ],
)
def test_a_line_of_a_log_is_no_use_of_the_number(body: str, used: bool) -> None:
    assert code(body).uses_batch_id is used


@pytest.mark.parametrize(
    ("body", "repeated"),
    [
        (f'text = f"batch {{number}}"\nprint(text)\n{JDBC}', [4]),
        (f"if number % 100 == 0:\n    batch.show()\n{JDBC}", [4]),
        (f'try:\n    {JDBC}\nexcept OSError as error:\n    raise ValueError(f"{{number}}") from error', [3]),
        ('path = os.path.join("out", str(number))\nbatch.write.mode("append").json(path)', [3]),
        (f'batch.write.mode("overwrite").json(f"out/{{number}}")\n{JDBC}', [3]),
        (
            f'sums = batch.withColumn("batch", F.lit(number))\nsums.write.mode("append").json("sums")\n{JDBC}',
            [4],
        ),
        (f'mark = F.lit(number)\nbatch = batch.withColumn("batch", mark)\n{JDBC}', []),
        ('batch.select("a", F.lit(number)).write.mode("append").json("out")', []),
        ('batch.write.format("delta").mode("append").options(txn=number).save("t")', []),
        (f"if number <= last:\n    return\n{JDBC}", []),
        (f"done = ledger.has(number)\n{JDBC}", []),
        (f"self._log_memory(batch_id=number)\n{JDBC}", [3]),
        (f"if log_batch(number):\n    return\n{JDBC}", []),
        (f'cursor.execute("DELETE FROM t WHERE batch = %s", (number,))\n{JDBC}', []),
        (f"if seen(number):\n    return\n{JDBC}", []),
        (
            f'figures = {{"batch": number, "rows": count(batch)}}\nif figures["rows"] > 9:\n    halt()\n{JDBC}',
            [5],
        ),
        (f"figures = (number, total)\n{JDBC}\nprint(figures)", [3]),
        (f'figures = {{"batch": number}}\nif figures["batch"] in DONE:\n    return\n{JDBC}', []),
        (f'figures = {{"batch": number}}\nledger.remove(figures)\n{JDBC}', []),
        (f"figures = [ledger.has(number)]\n{JDBC}", []),
        ('once = {"txnVersion": number}\nbatch.write.mode("append").options(**once).save("t")', []),
    ],
)
def test_a_batch_id_that_recognises_no_repetition_lets_an_append_repeat(
    body: str, repeated: list[int]
) -> None:
    result = code(body, "def seen(number):\n    return number in DONE")

    assert [write.span and write.span.line for write in result.repeated_writes] == repeated


def test_a_helper_of_the_same_file_is_read_with_its_own_names() -> None:
    result = code(
        "store(batch.select('a'), number)",
        """
        def store(rows, n):
            rows.write.mode("append").saveAsTable(f"t_{n}")
        """,
    )

    assert (result.uses_batch_id, [write.only_adds for write in result.writes], result.is_opaque) == (
        True,
        [True],
        False,
    )


def test_a_helper_gets_what_another_helper_makes_of_the_batch() -> None:
    helpers = "def flat(rows):\n    return rows\n\ndef plain(session, rows):\n    return rows"

    assert code(f"batch = plain(spark, flat(batch))\n{JDBC}", helpers).writes


def test_a_helper_may_return_several_frames_of_the_batch() -> None:
    findings = code(
        f"good, bad = split(batch)\n{JDBC.replace('batch', 'bad')}",
        "def split(frame):\n    return frame.where('a > 0'), frame.where('a <= 0')\n",
    )

    assert [write.only_adds for write in findings.writes] == [True]


def test_a_pair_of_values_has_the_batch_in_one_of_them() -> None:
    findings = code(f"good, other = batch.where('a > 0'), spark.table('t')\n{JDBC.replace('batch', 'other')}")

    assert findings.writes == ()


def test_the_result_of_a_helper_is_written_as_the_batch_is() -> None:
    findings = code(
        JDBC.replace("batch", "choose(batch)"), "def choose(frame):\n    return frame.select('a')\n"
    )

    assert [write.format for write in findings.writes] == ["jdbc"]
    assert len(findings.actions) == 1


def test_a_batch_that_a_helper_persists_is_cached() -> None:
    helper = "def store(rows):\n    rows.persist()\n    rows.count()\n    rows.write.save('a')\n"

    assert code("store(batch)", helper).is_persisted


def test_a_batch_handed_to_code_of_another_file_is_out_of_sight() -> None:
    assert code("upsert(batch)").is_opaque


def test_two_writes_on_one_way_are_two_actions() -> None:
    assert len(code('batch.write.save("a")\nbatch.write.save("b")').actions) == 2


@pytest.mark.parametrize(
    ("body", "actions"),
    [
        ('if hot:\n    batch.write.save("a")\nelse:\n    batch.write.save("b")', 1),
        ('if hot:\n    batch.write.save("a")\n    return\nbatch.write.save("b")', 1),
        ('if batch.isEmpty():\n    return\nbatch.write.save("b")', 1),
        ('batch.groupBy("a").count().write.save("b")', 1),
        ('batch.show()\nbatch.write.save("b")', 1),
        ('if batch.limit(1).count() == 0:\n    return\nbatch.write.save("b")', 1),
        ('n = batch.count()\nbatch.write.save("b")', 2),
        ('for t in tables:\n    batch.filter(t).write.save("b")', 2),
        ('for n in range(3):\n    try:\n        batch.write.save("b")\n        break\n'
         "    except OSError:\n        pass", 1),
        ('good = batch.filter("ok")\nbad = batch.filter("not ok")\ngood.write.save("a")\nbad.write.save("b")', 2),
        ('names.count()\nbatch.write.save("b")', 1),
        ('n = batch.count()\nspark = batch.sparkSession\nspark.createDataFrame([(n,)]).write.save("b")', 1),
        ('n = batch.count()\nbatch.sparkSession.createDataFrame([(n,)]).write.save("b")', 1),
        ('n = int(batch.count())\nlog = summary(n)\nlog.write.save("b")', 1),
        ('rows = batch.collect()\nframe = spark.createDataFrame(rows)\nframe.write.save("b")', 1),
        ('n = batch.count()\nlog(n)\nfound = batch.filter("ok")\nfound.write.save("b")', 2),
        ('s = batch.sparkSession\nrows = s.sql("SELECT 1 FROM v")\nrows.write.save("a")\nrows.write.save("b")', 2),
        ('batch = batch.filter("ok")\nbatch.write.save("a")\nbatch.write.save("b")', 2),
        ("if batch.count():\n    for row in batch.collect():\n        send(row)", 2),
        ('with open_file(batch.toPandas()):\n    batch.write.save("b")', 2),
        ('while batch.count() < 3:\n    batch.write.save("b")', 3),
    ],
)  # fmt: skip
def test_actions_are_counted_on_the_way_that_has_the_most(body: str, actions: int) -> None:
    assert len(code(body).actions) == actions


def test_a_cached_batch_is_known() -> None:
    assert code('batch.persist()\nbatch.write.save("a")\nbatch.write.save("b")').is_persisted


@pytest.mark.parametrize(
    "line",
    ['batch.select("a").collect()', "batch.toJSON().collect()", "rows = batch.toJSON()\nrows.collect()"],
)
def test_the_whole_batch_in_the_driver_is_known(line: str) -> None:
    assert len(code(line).collected) == 1


@pytest.mark.parametrize("line", ['batch.groupBy("a").count().collect()', "batch.limit(5).toPandas()"])
def test_a_few_rows_in_the_driver_are_not_the_whole_batch(line: str) -> None:
    assert code(line).collected == ()


def test_a_view_of_the_batch_read_by_another_session_is_known() -> None:
    result = code('batch.createOrReplaceTempView("rows")\nspark.sql("SELECT * FROM rows").write.save("a")')

    assert [(name, span.line) for name, span in result.outer_session_views] == [("rows", 3)]


@pytest.mark.parametrize(
    "line",
    [
        'batch.sparkSession.sql("SELECT * FROM rows")',
        'spark = batch.sparkSession\nspark.sql("SELECT * FROM rows")',
        'spark.sql("SELECT * FROM others")',
    ],
)
def test_the_batch_s_own_session_sees_its_views(line: str) -> None:
    assert code(f'batch.createOrReplaceTempView("rows")\n{line}').outer_session_views == ()


def test_a_writer_of_foreach_that_tells_by_partition_and_epoch_is_known() -> None:
    text = "class W:\n    def open(self, part, epoch):\n        return (part, epoch) not in self.done\n"
    result = foreach_batch.read_source(text, "job.py", 2, "open")

    assert result is not None
    assert result.partition_epoch_use is not None


def test_a_writer_of_foreach_that_logs_its_partition_is_right() -> None:
    text = "class W:\n    def open(self, part, epoch):\n        print(part, epoch)\n        return True\n"
    result = foreach_batch.read_source(text, "job.py", 2, "open")

    assert result is not None
    assert result.partition_epoch_use is None


GLUE = """
frame = DynamicFrame.fromDF(batch, glueContext, "frame")
mapped = ApplyMapping.apply(frame=frame, mappings=[])
"""


@pytest.mark.parametrize(
    ("line", "form", "adds"),
    [
        ('glueContext.write_dynamic_frame.from_options(frame=mapped, connection_type="s3")', "s3", True),
        (
            'glueContext.write_dynamic_frame.from_options(frame=mapped, connection_type="dynamodb")',
            "dynamodb",
            False,
        ),
        ('glueContext.write_dynamic_frame_from_options(frame, "s3", {"path": OUT})', "", True),
        ('sink = glueContext.getSink("s3", path=OUT)\nsink.writeFrame(frame)', "", True),
    ],
)
def test_a_write_of_glue_is_read(line: str, form: str, adds: bool) -> None:
    findings = code(f"{GLUE}{line}")

    (write,) = findings.writes
    assert (write.format, write.only_adds, findings.is_opaque) == (form, adds, False)
