"""Convert Spark's analysed plan into the classes of `analysis.query.plan_model`."""

from millstream.checking.query_plan.plan_reader import operators
from millstream.checking.query_plan.source_spans import SourceCall, SourcePlaces, SqlSpan, parse

__all__ = ["SourceCall", "SourcePlaces", "SqlSpan", "operators", "parse"]
