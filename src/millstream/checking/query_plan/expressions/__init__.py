"""Read the expressions of an analysed plan: determinism, time windows, intervals and column lineage."""
