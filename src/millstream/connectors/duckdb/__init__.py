"""DuckDB: a table of a database file on this machine."""
