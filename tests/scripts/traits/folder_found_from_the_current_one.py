# judged: 1 of 1
"""A notebook looks for the root of its repository, from the folder in which it runs."""

from pathlib import Path

from pyspark.sql import SparkSession


def find_root() -> Path:
    for folder in [Path.cwd(), *Path.cwd().parents]:
        if (folder / "traitlib" / "sources.py").exists():
            return folder
    raise RuntimeError("run this in the repository")


root = find_root()
spark = SparkSession.builder.getOrCreate()
rates = spark.readStream.format("rate").load()
query = rates.writeStream.format("console").start()
query.awaitTermination()
