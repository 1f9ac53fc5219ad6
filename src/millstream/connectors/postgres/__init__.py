"""PostgreSQL sink and dead-letter store, with the batch id in the transaction of the rows."""
