"""Delta Lake source, sink and dead-letter store; the log has the batch id in the same commit as the rows."""
