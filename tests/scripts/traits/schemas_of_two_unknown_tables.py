# judged: 1 of 1
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, from_json

spark = SparkSession.builder.getOrCreate()
players = spark.read.json("s3a://lake/players")  # info: [MS113]
bands = spark.read.json("s3a://lake/bands")  # info: [MS113]
with_band = players.join(bands, players.band == bands.id)


def read_lines(port):
    return spark.readStream.format("socket").option("host", "localhost").option("port", port).load()


new_bands = (
    read_lines(9998)
    .select(from_json("value", bands.schema).alias("b"))
    .select(col("b.id").alias("band_id"))
)
new_players = (
    read_lines(9999)
    .select(from_json("value", players.schema).alias("p"))
    .select(col("p.id").alias("id"), col("p.band").alias("band"))
)
joined = new_players.join(new_bands, new_players.band == new_bands.band_id)  # error: [MS209]
query = joined.writeStream.format("console").start()
query.awaitTermination()
