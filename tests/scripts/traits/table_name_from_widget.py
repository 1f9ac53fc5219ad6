# judged: 2 of 2
table = dbutils.widgets.get("table")  # info: [MS113]
source = spark.readStream.table(f"{table}.orders")  # info: [MS113]
source.writeStream.option("checkpointLocation", "/mnt/cp/a").toTable(f"{table}.copy")
files = (
    spark.readStream.format("cloudFiles")
    .option("cloudFiles.format", "json")
    .option("clodFiles.includeExistingFiles", "false")  # warning: [MS501]
    .schema("user STRING, ts TIMESTAMP")
    .load("/mnt/landing")
)
files.groupBy("user").count().writeStream.option("checkpointLocation", "/mnt/cp/b").outputMode(  # error: [MS201]
    "append"
).toTable("x")
