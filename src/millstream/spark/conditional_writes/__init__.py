"""Java classes with which Spark and Delta create files on S3 by conditional writes, and the jar of them."""
