# judged: 1 of 1
import boto3  # info: [MS113]
from pyspark.sql import SparkSession

client = boto3.client("secretsmanager", region_name="eu-west-1")
secret = client.get_secret_value(SecretId="kafka")["SecretString"]
user, password = secret.split(":")
spark = SparkSession.builder.getOrCreate()
raw = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "b:9092")
    .option("kafka.sasl.jaas.config", f'x required username="{user}" password="{password}";')
    .option("subscribe", "orders")
    .load()
)
raw.dropDuplicates(["key"]).writeStream.format("console").start().awaitTermination()  # error: [MS201]
