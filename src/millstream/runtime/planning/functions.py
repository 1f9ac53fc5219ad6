"""Spark's expressions by name, and how stable each is when its batch runs again."""

from __future__ import annotations

import re

from millstream.analysis.dataflow import Stability

# Classes whose name in SQL is not their own in snake_case.
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

# What each run draws anew: Spark replaces current_timestamp() with the batch's own time and keeps that through
# a replay, but not now(), which its parser makes another expression of.
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
# Sums of floating point differ in their last digits by the order of the rows.
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


def name_of(kind: str) -> str:
    """`CurrentTimestamp` in lower case, as SQL has it: `current_timestamp`."""
    return _NAMES.get(kind) or _HUMP.sub("_", kind).lower()


def stability(kind: str, deterministic: bool | None, *, floating: bool) -> Stability:
    """Of an expression alone, without what it is made of; `floating` when it is given floats or doubles.

    `deterministic` is what the user said of a function of theirs, None for Spark's own.
    """
    if kind in _UNSTABLE or deterministic is False:
        return Stability.UNSTABLE
    if kind in _UNKNOWN:
        return Stability.UNKNOWN
    if kind in _PARTITION:
        return Stability.PARTITION
    if kind in _ORDER or (floating and kind in _SUMS):
        return Stability.ORDER
    return Stability.BATCH if kind in _BATCH else Stability.STABLE
