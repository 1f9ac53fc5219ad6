"""Name Spark's expressions as in SQL, and classify how stable each is when its batch runs again."""

from __future__ import annotations

import re

from millstream.analysis.query.plan_model import Stability

# Classes whose name in SQL is not the class name in snake_case.
_NAMES = {
    "AttributeReference": "column",
    "OuterReference": "outer",
    "JsonToStructs": "from_json",
    "StructsToJson": "to_json",
    "CsvToStructs": "from_csv",
    "StructsToCsv": "to_csv",
    "ParseToTimestamp": "to_timestamp",
    "ParseToDate": "to_date",
    "GetTimestamp": "to_timestamp",
    "DateFormatClass": "date_format",
    "CreateNamedStruct": "named_struct",
    "CreateArray": "array",
    "CreateMap": "map",
    "PosExplode": "posexplode",
    "Average": "avg",
    "HyperLogLogPlusPlus": "approx_count_distinct",
    "ApproximatePercentile": "percentile_approx",
    "RegExpReplace": "regexp_replace",
    "RegExpExtract": "regexp_extract",
    "RLike": "rlike",
    "StringSplit": "split",
    "StringTrim": "trim",
    "CaseWhen": "case",
    "SparkPartitionID": "spark_partition_id",
    "MonotonicallyIncreasingID": "monotonically_increasing_id",
    "CollectList": "collect_list",
    "CollectSet": "collect_set",
    "ListAgg": "listagg",
    "StddevSamp": "stddev",
    "VarianceSamp": "variance",
    "RandStr": "randstr",
    "TimestampAddInterval": "timestamp_add_interval",
    "PythonUDF": "python_udf",
    "PythonUDAF": "python_udf",
    "PythonUDTF": "python_udtf",
    "ScalaUDF": "scala_udf",
}

# Expressions with a new value in each run. Spark replaces current_timestamp() with the batch's time, also in a
# replay, but not now(), which its parser turns into another expression.
_UNSTABLE = {"Now", "CurrentTime", "Rand", "Randn", "Uuid", "Shuffle", "RandStr", "Uniform", "UuidV7"}
_BATCH = {"CurrentTimestamp", "CurrentDate", "LocalTimestamp", "CurrentBatchTimestamp"}
_PARTITION = {
    "SparkPartitionID",
    "MonotonicallyIncreasingID",
    "InputFileName",
    "InputFileBlockStart",
    "InputFileBlockLength",
}
_ORDER = {
    "First",
    "Last",
    "AnyValue",
    "FirstValue",
    "LastValue",
    "CollectList",
    "CollectSet",
    "ListAgg",
    "MaxBy",
    "MinBy",
    "Mode",
    "ApproximatePercentile",
}
# Floating-point sums differ in their last digits, depending on the order of the rows.
_SUMS = {"Sum", "TrySum", "Average", "TryAverage", "StddevSamp", "StddevPop", "VarianceSamp", "VariancePop"}
_UNKNOWN = {
    "PythonUDF",
    "PythonUDAF",
    "PythonUDTF",
    "ScalaUDF",
    "ScalaUDAF",
    "ScalaAggregator",
    "TypedAggregateExpression",
    "ApplyFunctionExpression",
    "CallMethodViaReflection",
    "HiveSimpleUDF",
    "HiveGenericUDF",
    "HiveGenericUDTF",
    "HiveUDAFFunction",
    "V2Aggregator",
}

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def sql_name(kind: str) -> str:
    """Return the SQL name of an expression class: `current_timestamp` for `CurrentTimestamp`."""
    return _NAMES.get(kind) or _HUMP.sub("_", kind).lower()


def classify_stability(kind: str, deterministic: bool | None, *, floating: bool) -> Stability:
    """Return the stability of an expression itself, without its inputs. `floating` means float or double inputs.

    `deterministic` is the user's declaration for a function, or None for Spark's own functions.
    """
    if kind == "ScalaUDF":
        # Python declares none. Spark ML marks its own as nondeterministic only so that they run once per row.
        return Stability.UNKNOWN
    if kind in _UNSTABLE or deterministic is False:
        return Stability.UNSTABLE
    if kind in _UNKNOWN:
        return Stability.UNKNOWN
    if kind in _PARTITION:
        return Stability.PARTITION
    if kind in _ORDER or (floating and kind in _SUMS):
        return Stability.ORDER
    return Stability.BATCH if kind in _BATCH else Stability.STABLE
