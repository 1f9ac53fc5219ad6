"""Spark's analysed plan, read into the values of `analysis.dataflow`."""

from millstream.runtime.planning.build import operators
from millstream.runtime.planning.places import Call, Stretch, Where, parse

__all__ = ["Call", "Stretch", "Where", "operators", "parse"]
