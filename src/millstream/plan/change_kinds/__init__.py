"""The kinds of change of a query, by what changes: its sources, its state, the query itself."""
