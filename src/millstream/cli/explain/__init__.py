"""The commands `explain`, `config`, `graph` and `schema`, which describe a spec."""
