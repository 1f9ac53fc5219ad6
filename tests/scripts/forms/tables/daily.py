from pyspark import pipelines as dp


@dp.materialized_view
def depots():
    return spark.read.table("parcels").groupBy("depot").count()


@dp.table
def heavy():
    return spark.readStream.table("parcels").where("kilograms > 20")
