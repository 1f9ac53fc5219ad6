"""Transforms of a shop's streams, used by a script beside this package."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def cleaned(orders: DataFrame) -> DataFrame:
    """Orders with an amount."""
    return orders.where(F.col("amount") > 0)


def ranked(orders: DataFrame) -> DataFrame:
    """The dearest orders first."""
    return orders.orderBy(F.desc("amount"))  # error: [MS311]


def with_day(orders: DataFrame, column: str) -> DataFrame:
    """Orders with their day."""
    return orders.withColumn("day", F.to_date(column))
