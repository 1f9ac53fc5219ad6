"""Pipelines drawn at random: views over views of joins, windows, aggregations, sorts, limits and unions.

Every relation has the columns `k INT`, `t TIMESTAMP` and `n BIGINT`, so that any operator may follow any other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

STREAMS = {"orders": "1 minute", "clicks": "10 seconds", "raw": None}
"""The streams and the delays of their watermarks."""
TABLES = ("users",)
COLUMNS = {"k": "int", "t": "timestamp", "n": "bigint"}

_KEYS = (
    ("k", "k", "max(t)"),
    ("t", "any_value(k)", "t"),
    ("k, t", "k", "t"),
    ("k, window(t, '1 minute', '30 seconds')", "k", "max(t)"),
    ("k, session_window(t, '1 minute')", "k", "max(t)"),
    ("session_window(t, '1 minute')", "max(k)", "max(t)"),
    ("ROLLUP(k, t)", "k", "t"),
    ("GROUPING SETS ((k, t), (t))", "k", "t"),
    ("", "max(k)", "max(t)"),
)
_COUNTS = ("count(*)", "sum(n)", "count(*)", "approx_count_distinct(n)", "count(DISTINCT n)")
_JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", "CROSS JOIN")
_CONDITIONS = (
    "a.k = b.k",
    "a.t = b.t",
    "a.k = b.k AND b.t BETWEEN a.t AND a.t + INTERVAL 1 HOUR",
    "a.k = b.k AND a.t > b.t + INTERVAL 10 SECONDS",
    "a.t < b.t + INTERVAL 10 SECONDS",
    "a.k = b.k AND rand() < 0.5",
)
_COLUMNS = (
    "k, t, n + 1 AS n",
    "k, t + INTERVAL 1 SECOND AS t, n",
    "k, CAST(t AS TIMESTAMP) AS t, n",
    "CAST(n AS INT) AS k, t, n",
    "k, t, monotonically_increasing_id() AS n",
    "k, current_timestamp() AS t, n",
    "k, t, row_number() OVER (PARTITION BY k ORDER BY t) AS n",
)
_AFTER = ("ORDER BY t", "LIMIT 3", "LIMIT 3 OFFSET 1", "ORDER BY n LIMIT 3", "SORT BY k")
_SETS = ("UNION ALL", "UNION ALL", "UNION", "EXCEPT", "INTERSECT")
_WHERE = (
    "n > 3",
    "k IS NOT NULL",
    "k IN (SELECT k FROM {other})",
    "EXISTS (SELECT 1 FROM {other} o WHERE o.k = a.k)",
)
_PYTHON = (
    "dropDuplicates(['k', 't'])",
    "dropDuplicates(['k'])",
    "dropDuplicatesWithinWatermark(['k'])",
    "withWatermark('t', '5 minutes')",
    "distinct()",
    "orderBy('k')",
    "limit(3)",
    "sample(0.5, 1)",
    "filter('n > 3')",
    "observe('seen', F.count('*').alias('rows'))",
)
_TRIGGERS = ("", "", "", "1 second", "available_now", "{continuous: 10 seconds}", "{real_time: 10 seconds}")


@dataclass(frozen=True)
class View:
    """One view: SQL, or a method of a DataFrame called on another relation."""

    name: str
    sql: str = ""
    of: str = ""
    call: str = ""


@dataclass(frozen=True)
class Drawn:
    """A pipeline of one query over the last of its views."""

    number: int
    views: tuple[View, ...]
    mode: str
    trigger: str
    folder: str = field(default="data", compare=False)

    @property
    def module(self) -> str:
        """The Python file of its functions."""
        return f"drawn_{self.number}"

    def reads(self, source: str) -> bool:
        """Does a view read this source?"""
        return any(re.search(rf"\b{source}\b", view.of or view.sql) for view in self.views)

    def python(self) -> str:
        """The text of that file."""
        functions = [
            f"def {view.name}({view.of}):\n    return {view.of}.{view.call}\n"
            for view in self.views
            if view.call
        ]
        return "\n\n".join(["from pyspark.sql import functions as F\n", *functions])

    def spec(self) -> str:
        """The text of the spec."""
        schema = "{" + ", ".join(f"{name}: {kind}" for name, kind in COLUMNS.items()) + "}"
        lines = ["name: drawn", "sources:"]
        for name in filter(self.reads, (*STREAMS, *TABLES)):
            lines += [f"  {name}:", f"    json: {{path: {self.folder}}}", f"    schema: {schema}"]
            # Setting malformed rows aside costs an analysis a source, and each draw is analysed twice.
            lines += ["    on_malformed: fail"] if self.number % 8 else []
            lines += ["    static: true"] if name in TABLES else []
            if delay := STREAMS.get(name):
                lines += [f"    watermark: {{event_time: t, delay_threshold: {delay}}}"]
        lines += ["views:"]
        for view in self.views:
            lines += (
                [f"  {view.name}: {{python: '{self.module}:{view.name}'}}"]
                if view.call
                else [
                    f"  {view.name}: |",
                    f"    {view.sql}",
                ]
            )
        lines += ["queries:", f"  {self.views[-1].name}:", f"    output_mode: {self.mode}"]
        lines += [f"    trigger: {self.trigger}"] if self.trigger else []
        return "\n".join([*lines, "    to: {console: {}}", ""])


def draw(random: Random, number: int) -> Drawn:
    """A pipeline of one to four views."""
    relations = [*STREAMS, *STREAMS, *STREAMS, *STREAMS, *TABLES]
    views: list[View] = []
    for index in range(random.choice((1, 1, 2, 2, 3, 4))):
        views.append(_view(random, f"v{index}", relations, views))
        # A view is read more often than a source, so that operators come after operators.
        relations += [views[-1].name] * 6
    mode = random.choice(("append", "append", "update", "complete"))
    return Drawn(number, tuple(views), mode, random.choice(_TRIGGERS))


def _view(random: Random, name: str, relations: list[str], before: list[View]) -> View:
    # The last view is read at least once, or it would be judged by nobody.
    item = before[-1].name if before else random.choice(relations)
    other = random.choice(relations)
    where = f" WHERE {random.choice(_WHERE).format(other=other)}" if random.random() < 0.15 else ""
    match random.choice(
        ("group", "group", "join", "join", "set", "columns", "after", "python", "python", "pivot")
    ):
        case "group":
            keys, k, t = random.choice(_KEYS)
            by = f" GROUP BY {keys}" if keys else ""
            having = " HAVING count(*) > 1" if by and random.random() < 0.2 else ""
            sql = f"SELECT {k} AS k, {t} AS t, {random.choice(_COUNTS)} AS n FROM {item} a{where}{by}{having}"
        case "window":
            window = random.choice(("window(t, '1 minute')", "window(t, '5 minutes', '1 minute')"))
            inner = f"SELECT max(k) AS k, {window} AS w, count(*) AS n FROM {item} a{where} GROUP BY {window}"
            sql = f"SELECT k, window_time(w) AS t, n FROM ({inner})"
        case "join":
            how = random.choice(_JOINS)
            on = "" if how == "CROSS JOIN" else f" ON {random.choice(_CONDITIONS)}"
            left, right = (item, other) if random.random() < 0.7 else (other, item)
            side = "b" if how == "RIGHT JOIN" else "a"
            sql = f"SELECT {side}.k, {side}.t, {side}.n FROM {left} a {how} {right} b{on}"
        case "set":
            sql = f"SELECT k, t, n FROM {item} {random.choice(_SETS)} SELECT k, t, n FROM {other}"
        case "columns":
            sql = f"SELECT {random.choice(_COLUMNS)} FROM {item} a{where}"
        case "after":
            sql = f"SELECT k, t, n FROM {item} a{where} {random.choice(_AFTER)}"
        case "pivot":
            values = random.choice(("1 AS x, 2 AS y", "1 AS x"))
            sql = f"SELECT 1 AS k, t, x AS n FROM {item} PIVOT (sum(n) FOR k IN ({values}))"
        case _:
            return View(name, of=item, call=random.choice(_PYTHON))
    return View(name, sql=sql)
