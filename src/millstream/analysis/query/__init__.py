"""Analysis of a query's plan: event time, columns, determinism, delivery guarantee."""
