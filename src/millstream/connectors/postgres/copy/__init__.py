"""Copy rows to PostgreSQL by binary COPY, also from Spark's tasks into a staging table."""
