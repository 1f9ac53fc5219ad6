# judged: 1 of 1
"""A batch is collected and written row by row, and a failure is only logged."""

import logging
import sqlite3

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()


def store(batch, batch_id):
    rows = batch.collect()
    connection = None
    try:
        connection = sqlite3.connect("store.db")
        for row in rows:
            connection.execute("INSERT INTO counts VALUES (?, ?)", tuple(row))
        connection.commit()
    except Exception as error:  # error: [MS340]
        logging.error("batch %s failed: %s", batch_id, error)
    finally:
        if connection:
            connection.close()


rows = spark.readStream.format("rate").load()
query = rows.writeStream.foreachBatch(store).option("checkpointLocation", "/data/counts")
query.start().awaitTermination()
