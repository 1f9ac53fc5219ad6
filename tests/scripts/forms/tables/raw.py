from pyspark import pipelines as dp


@dp.table
def parcels():
    return spark.readStream.schema("id INT, depot STRING, weight DOUBLE").json("/Volumes/post/parcels")
