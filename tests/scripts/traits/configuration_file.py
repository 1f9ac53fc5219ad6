# judged: 1 of 1
import configparser
import json
from pathlib import Path

from pyspark.sql import SparkSession

config = configparser.ConfigParser()
config.read("/etc/job/nowhere.ini")
servers = config.get("kafka", "servers", fallback="b:9092")
state = Path("/data/state-of-nobody.json")
state.write_text(json.dumps({"runs": 1}))
spark = SparkSession.builder.config("spark.sql.shuffle.partitions", "8").getOrCreate()
raw = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", "a").load()
query = raw.writeStream.format("memory").queryName("recent").start()
query.awaitTermination(timeout=60)
