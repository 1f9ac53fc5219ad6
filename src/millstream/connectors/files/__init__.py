"""Folders of Parquet, JSON, CSV, ORC and text files, as sources and sinks."""
