from databricks.sdk.runtime import spark

landing = spark.conf.get("landing")
silver = spark.conf.get("silver")
