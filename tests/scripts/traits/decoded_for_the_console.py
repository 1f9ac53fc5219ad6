# judged: 4 of 4
"""Who looks at a console sees the NULLs of an invalid message; a query that fails at one fails there too.

A column that Spark fills with the text of an invalid message may have any name.
"""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()
kafka = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "b:9092").option("subscribe", "t").load()
text = F.col("value").cast("string")
looms = kafka.select(F.from_json(text, "loom STRING, threads INT").alias("d")).select("d.*")
looms.writeStream.format("console").start()
strict = kafka.select(F.from_json(text, "loom STRING", {"mode": "FAILFAST"}).alias("d"))  # warning: [MS553]
strict.writeStream.format("console").start()
cloth = kafka.select(F.from_json(text, "loom STRING, metres DOUBLE").alias("d")).select("d.*")  # warning: [MS553]
cloth.writeStream.option("checkpointLocation", "s3a://cp/cloth").start("s3a://lake/cloth")
to_bad = {"columnNameOfCorruptRecord": "bad"}
spun = kafka.select(F.from_json(text, "spindle INT, bad STRING", to_bad).alias("d")).select("d.*")
spun.writeStream.option("checkpointLocation", "s3a://cp/spun").start("s3a://lake/spun")
spark.streams.awaitAnyTermination()
