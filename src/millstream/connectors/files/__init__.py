"""Sources and sinks for folders of Parquet, JSON, CSV, ORC and text files."""
