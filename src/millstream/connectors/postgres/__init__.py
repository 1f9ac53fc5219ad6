"""PostgreSQL sink and dead-letter store, with the batch number in the transaction of the rows."""
