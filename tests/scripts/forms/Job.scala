object Job extends App { val spark = SparkSession.builder.getOrCreate() }
