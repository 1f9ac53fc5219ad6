def read_rates(spark):
    return spark.readStream.format("rate").load().orderBy("value")  # error: [MS311]
