# judged: 1 of 1
import socket
import subprocess

from pyspark.sql import SparkSession

subprocess.run(["hdfs", "dfs", "-rm", "-r", "/checkpoints"], check=True)  # info: [MS114]
connection = socket.create_connection(("registry.invalid", 8081))  # info: [MS114]
connection.sendall(b"x")
spark = SparkSession.builder.getOrCreate()
rates = spark.readStream.format("rate").load()
rates.orderBy("value").writeStream.format("console").start().awaitTermination()  # error: [MS311]
