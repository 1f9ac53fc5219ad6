# judged: 4 of 4
"""The path of a checkpoint that has another name at each start."""

import tempfile
import time
import uuid
from datetime import datetime

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rates = spark.readStream.format("rate").load()
run = str(uuid.uuid4())[:8]
paths = rates.writeStream.format("parquet")
paths.option("checkpointLocation", f"s3a://lake/_checkpoints/{run}").start("s3a://lake/a")  # warning: [MS403]
folder = f"s3a://lake/_checkpoints/b_{int(time.time())}"
rates.writeStream.option("checkpointLocation", folder).start("s3a://lake/b")  # warning: [MS403]
folder = datetime.now().strftime("s3a://lake/_checkpoints/c-%Y-%m-%d-%H-%M")
rates.writeStream.option("checkpointLocation", folder).start("s3a://lake/c")  # warning: [MS403]
folder = tempfile.mkdtemp()
rates.writeStream.option("checkpointLocation", folder).start("s3a://lake/d")  # warning: [MS403]
spark.streams.awaitAnyTermination()
