"""Build sources and views of a spec as Spark DataFrames: decoding, expectations, user functions."""
