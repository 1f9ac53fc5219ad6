"""PostgreSQL: tables written in one transaction with the batch's number."""
