"""Changes of pipelines, each with the verdict of `plan` and what Spark then does."""

from __future__ import annotations

from restart_run import DELETE, Edit

SQL = "views/result/sql"
MODE = "queries/out/output_mode"
OK, NOTE, AFRESH, WRONG = "continues", "continues_with_note", "start_afresh", "silently_wrong"

EDITS = [
    Edit("nothing", "totals", {}, OK, "right"),
    Edit("sum to max", "totals", {SQL: "sum(v)=>max(v)"}, WRONG, "wrong"),
    Edit(
        "min and max swapped",
        "totals",
        {SQL: "min(w) AS lo, max(w) AS hi=>max(w) AS hi, min(w) AS lo"},
        WRONG,
        "wrong",
    ),
    Edit(
        "key in upper case",
        "totals",
        {
            SQL: "GROUP BY k=>GROUP BY upper(k)",
            "views/result/sql": "SELECT upper(k) AS k, sum(v) AS s, min(w) AS lo, max(w) AS hi, count(*) AS n FROM orders GROUP BY upper(k)",
        },
        WRONG,
        "wrong",
    ),
    Edit("key renamed", "totals", {SQL: "SELECT k,=>SELECT k AS key,"}, NOTE, "right"),
    Edit(
        "one aggregate more", "totals", {SQL: "count(*) AS n=>count(*) AS n, avg(v) AS a"}, AFRESH, "refused"
    ),
    Edit("one aggregate less", "totals", {SQL: ", count(*) AS n=>"}, AFRESH, "refused"),
    Edit("filter below state", "totals", {SQL: "FROM orders=>FROM orders WHERE v > 4"}, WRONG, "wrong"),
    Edit("key added", "totals", {SQL: "GROUP BY k=>GROUP BY k, g"}, AFRESH, "refused"),
    Edit("longer window", "windows", {SQL: "10 minutes=>15 minutes"}, WRONG, "wrong"),
    Edit("sliding window", "windows", {SQL: "'10 minutes'=>'10 minutes', '5 minutes'"}, AFRESH, "refused"),
    Edit(
        "watermark longer",
        "windows",
        {"sources/orders/watermark/delay_threshold": "20 minutes"},
        NOTE,
        "right",
    ),
    Edit("filter", "rows", {SQL: "v > 1=>v > 4"}, NOTE, "right"),
    Edit("column more", "rows", {SQL: "v + w AS t=>v + w AS t, w"}, NOTE, "right"),
    Edit(
        "state added",
        "rows",
        {
            SQL: "SELECT id, k, v, v + w AS t FROM orders WHERE v > 1=>SELECT k, sum(v) AS s FROM orders GROUP BY k",
            MODE: "update",
        },
        AFRESH,
        "refused",
    ),
    Edit("gap longer", "sessions", {SQL: "5 minutes=>8 minutes"}, WRONG, "wrong"),
    Edit(
        "other column of one type",
        "unrepeated",
        {"sources/orders/drop_duplicates_within_watermark": ["k"]},
        WRONG,
        "wrong",
    ),
    Edit("bound wider", "pairs", {SQL: "10 MINUTES=>20 MINUTES"}, WRONG, "wrong"),
    Edit("inner to left", "pairs", {SQL: "JOIN=>LEFT JOIN"}, AFRESH, "refused"),
    Edit("left to inner", "left", {SQL: "LEFT JOIN=>JOIN"}, NOTE, "right"),
    Edit("column less above the join", "pairs", {SQL: "o.v, p.v AS paid=>p.v AS paid"}, AFRESH, "refused"),
    Edit(
        "sources swapped",
        "union",
        {
            SQL: "SELECT id, k, v FROM orders UNION ALL SELECT id, k, v FROM pays=>SELECT id, k, v FROM pays UNION ALL SELECT id, k, v FROM orders"
        },
        WRONG,
        "refused",
    ),
    Edit(
        "source removed",
        "union",
        {SQL: " UNION ALL SELECT id, k, v FROM pays=>", "sources/pays": DELETE},
        AFRESH,
        "refused",
    ),
]
